"""Merge and check the contents of a job request: values, files, variables and trainers."""
