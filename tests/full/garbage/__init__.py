"""Test every command that reads a file with every kind of garbage instead of the file."""
