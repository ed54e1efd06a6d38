"""Measurements against tools that people would use instead; `make bench-…` runs them."""
