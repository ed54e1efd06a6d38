"""Launches on other people's clusters, from public reports."""
