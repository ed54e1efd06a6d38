"""Container runtimes: how a command is started in an image."""
