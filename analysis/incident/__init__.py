"""One incident: when it began and ended, its figures, and what was done meanwhile."""
