"""Predict launches from facts. Pure functions; each finding cites the lines of its evidence."""
