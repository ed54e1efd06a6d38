"""Predict the outcome of launches from facts about host and image. All functions are pure, and each finding
cites its evidence.
"""
