"""Alerts as tested data: thresholds, conditions, causes, the pack, runbooks, triage, linter."""
