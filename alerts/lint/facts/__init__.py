"""What is known of metrics: which releases of an engine have them, of what type they are, what they go up to."""
