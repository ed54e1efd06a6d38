"""Run commands and move files on another machine over SSH."""
