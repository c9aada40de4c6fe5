"""What is asked of a fleet, and when: drawn from parameters, or read from public traces."""
