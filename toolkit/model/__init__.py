"""Frozen values that the other packages exchange; they have no behaviour except reading."""
