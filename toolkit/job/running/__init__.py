"""Submitted jobs: follow, wait for, read, cancel and resume them."""
