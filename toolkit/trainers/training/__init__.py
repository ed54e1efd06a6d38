"""One run of a trainer: its epochs, what it keeps, what it writes down, and what it is stopped by."""
