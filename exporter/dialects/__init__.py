"""One file an engine: which names it uses, in which releases, and how to read them."""
