"""What shows each cause in history: one file a cause."""
