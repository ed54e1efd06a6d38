"""The command line: one module a command, and the only place that exits."""
