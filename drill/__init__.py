"""A fire drill: fleets that fail the way real ones did, with known truth."""
