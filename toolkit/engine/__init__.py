"""Predict the outcome of launches from facts. All functions are pure, and each finding cites its evidence."""
