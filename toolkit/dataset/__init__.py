"""Data sets: which files they are, where they come from, and how they get here unharmed."""
