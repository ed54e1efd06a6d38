"""The vocabulary check, which finds words that docs/writing.md replaces in all text for readers."""
