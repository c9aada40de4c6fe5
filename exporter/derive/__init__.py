"""One file a phenomenon: its signals, and the pure function that computes them."""
