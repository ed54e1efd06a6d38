"""Measurements that are compared with what people would use instead; `make bench-…` runs them."""
