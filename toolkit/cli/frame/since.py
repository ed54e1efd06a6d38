"""Parse the value of ``--since``, such as ``2h``, ``3d`` or a date."""

import datetime as dt
import re

from toolkit.errors import BadInput

_SPAN = re.compile(r"(\d{1,6})\s*(m|min|h|d|w)")
_UNITS = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since(text: str, now: dt.datetime) -> dt.datetime:
    """Return the time that ``text`` names: a date, or a time span before ``now``, such as ``2h``.

    A date without a time zone is in the time zone of ``now``.

    Raises:
        BadInput: if the text is neither a time span nor a date.
    """
    try:
        if span := _SPAN.fullmatch(text.strip().lower()):
            return now - dt.timedelta(**{_UNITS[span[2]]: int(span[1])})
        moment = dt.datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise BadInput(
            f"--since {text!r}: neither a span (30m, 2h, 3d, 1w) nor a date (2026-11-21, 2026-11-21T18:00)"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
