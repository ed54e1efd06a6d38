"""Many processes: which one this is, where the others are, what devices it has, and how sums are made."""
