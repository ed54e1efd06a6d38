"""Predict launches from facts. Pure functions; each finding cites the lines that it follows from."""
