"""Everything together: the stack on one machine, and what other places need. It knows the parts by their commands."""
