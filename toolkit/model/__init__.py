"""Frozen values that the other packages pass to each other; no behaviour beyond reading them."""
