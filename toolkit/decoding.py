"""Describe what is wrong with JSON from another program."""

import msgspec

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Text that is not JSON or has another shape; bytes that are not UTF-8, for which msgspec raises Python's
error; parts that are nested too deep.
"""
