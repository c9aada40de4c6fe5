"""What happened: history, detection, incidents, backtests, reports."""
