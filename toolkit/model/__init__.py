"""Immutable structs with which toolkit's packages exchange data. Their methods only read the fields."""
