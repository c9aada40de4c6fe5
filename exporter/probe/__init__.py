"""The probe: one file that runs inside an engine, beside its scheduler. The sidecar imports nothing of it."""
