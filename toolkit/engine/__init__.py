"""Predict launches from facts. All functions are pure, and each finding cites the lines of its evidence."""
