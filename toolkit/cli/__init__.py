"""The command line: a module for each command; only this package exits."""
