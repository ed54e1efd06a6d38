"""Code that all commands share: help, global options, streams, styles and errors."""
