"""Commands that work on the user's scripts."""
