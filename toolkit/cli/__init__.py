"""The command line, with one module for each command. A command that fails raises an exception; only
:mod:`toolkit.cli.main` exits the process.
"""
