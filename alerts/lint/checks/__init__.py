"""One file a check; its test in ``tests/alerts/lint/checks`` and its page in ``docs/lint`` bear the same name."""
