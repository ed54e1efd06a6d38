"""Benchmarks that compare toolkit with the tools that users would use instead; `make bench-…` runs them."""
