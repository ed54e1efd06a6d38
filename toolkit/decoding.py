"""List the exceptions that msgspec raises when it cannot decode JSON that another program wrote."""

import msgspec

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions for text that is not JSON or has a different structure, for bytes that are not UTF-8, and
for nesting that is too deep.
"""
