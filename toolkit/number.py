"""Format a measured number for display."""

from math import floor, isfinite, log10


def number(value: float, digits: int = 3) -> str:
    """Return a number as text without an exponent, rounded to at most ``digits`` significant digits.

    The function does not round digits before the decimal point, even if there are more than ``digits``.

    >>> [number(value) for value in (0.4231, 8.0, 25.44, 3457.2)]
    ['0.423', '8', '25.4', '3,457']
    """
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    places = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text
