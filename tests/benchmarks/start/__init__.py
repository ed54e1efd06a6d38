"""Measure the start of a Python program from a slow shared file system."""
