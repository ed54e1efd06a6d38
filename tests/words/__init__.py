"""The vocabulary check: finds words that the writing guide replaces, in text that people read."""
