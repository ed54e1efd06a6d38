"""The only modules that format for people."""
