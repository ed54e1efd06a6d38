"""The vocabulary check, which finds words that text for readers must not contain (see docs/writing.md)."""
