"""The pack of alerts over the drill: what fires, when, and what of it reaches a human. ``make eval``."""
