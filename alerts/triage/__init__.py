"""Triage: the runbook's four questions asked of a live engine, and a verdict; one file for each part of it."""
