"""Data sets: their files, their sources, and verified downloads."""
