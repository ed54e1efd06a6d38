"""Immutable structs that toolkit's other packages exchange. The structs' methods only read their fields."""
