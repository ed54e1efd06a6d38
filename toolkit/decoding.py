"""Describe what is wrong with JSON from another program."""

import msgspec

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""No JSON, or none of the shape that is wanted; bytes that are no UTF-8, which msgspec finds last and lets
Python tell; too many parts in each other."""
