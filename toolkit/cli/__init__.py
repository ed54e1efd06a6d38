"""The command line, with one module for each command. The code that commands call never exits the process."""
