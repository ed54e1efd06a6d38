"""Frozen values that the other packages exchange; their only behaviour is reading them."""
