"""The exceptions that decoding JSON from another program can raise."""

import msgspec

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions for text that is not JSON or has another structure, for bytes that are not UTF-8, and for parts
that are nested too deeply.
"""
