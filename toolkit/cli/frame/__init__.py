"""What every command has: help, options of all commands, streams, styles, errors."""
