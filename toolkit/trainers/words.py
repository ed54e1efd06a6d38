"""Parse numbers and sizes from a command line, and format sizes for messages."""

import argparse

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def count(text: str) -> int:
    """Return the positive integer in ``text``. If ``text`` is not a positive integer, raise an error that
    argparse reports.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def count_or_auto(text: str) -> int:
    """Return the positive integer in ``text``, or 0 for ``auto``."""
    return 0 if text == "auto" else count(text)


def positive(text: str) -> float:
    """Return the positive, finite number in ``text``. If ``text`` is not such a number, raise an error that
    argparse reports.
    """
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def seed(text: str) -> int:
    """Return the random seed in ``text``. NumPy and TensorFlow accept seeds from 0 to 2**31 - 1."""
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and {2**31 - 1}")
    return value


def size(text: str) -> int:
    """Return the number of bytes that ``text`` states: an integer with an optional binary unit K, M, G or T.

    >>> size("2G") == 2 * 1024**3
    True
    """
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    if unit not in _UNITS or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 2G")
    return int(number) * _UNITS[unit]


def format_bytes(count: float) -> str:
    """Return a number of bytes as text, with three significant digits and a binary unit.

    >>> format_bytes(1.5 * 2**30)
    '1.5 GiB'
    """
    for name, unit in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"
