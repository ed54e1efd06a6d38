"""Test every command that reads a file: toolkit gets each kind of garbage instead of the file."""
