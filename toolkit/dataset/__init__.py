"""Download data sets: their files, their sources, and verification of each file."""
