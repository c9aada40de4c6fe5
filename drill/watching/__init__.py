"""What a sidecar beside the drill's fleet reads, second by second, with the blind spots of what it reads."""
