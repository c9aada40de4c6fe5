"""Where numbers come from: one file a source, all behind the Protocol of ``source.py``."""
