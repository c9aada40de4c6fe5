"""Why it happened: causes as templates of evidence in causal order, judged on a frame and ranked."""
