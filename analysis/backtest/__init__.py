"""Would it have paged: alerts over the past, their noise and their lead, and what other thresholds would have made."""
