"""The command line: one module for each command; only this package exits the process."""
