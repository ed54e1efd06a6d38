"""The command line, with one module for each command. Only this package of toolkit exits the process."""
