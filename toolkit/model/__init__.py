"""Frozen structs that the other packages exchange. Their methods only read the fields."""
