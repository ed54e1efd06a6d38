"""Parts of every command: help, options of all commands, streams, styles, errors."""
