"""One engine as a model: scheduler, blocks and the time each iteration takes, iteration by iteration."""
