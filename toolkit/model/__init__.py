"""Frozen structs that the other packages exchange. The methods of these structs only read the fields."""
