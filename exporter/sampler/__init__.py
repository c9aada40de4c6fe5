"""The process that owns the GPU library, and nothing else: a call that hangs in the driver hangs here."""
