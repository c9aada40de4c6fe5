"""PromQL as a tree whose nodes know where they stand in the text."""
