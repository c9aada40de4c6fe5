"""Ways in which a fleet fails, or doesn't, one file each, with known truth. See docs/drill.md."""
