"""List the exceptions that msgspec raises when it cannot decode JSON that another program wrote."""

import msgspec

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""msgspec raises one of these exceptions if the text is not JSON or does not have the expected structure, if
the bytes are not UTF-8, or if the nesting is too deep.
"""
