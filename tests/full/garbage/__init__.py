"""Every command that takes a file, given every kind of garbage."""
