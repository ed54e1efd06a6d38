"""Sizes of files in words (decimal units, as ``ls -lh --si`` and vendors of disks count)."""

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def in_bytes(size: float) -> str:
    """Return a number of bytes with three digits and its unit: ``312 B``, ``1.63 MB``, ``289 MB``."""
    for factor, unit in _UNITS:
        if size >= 0.9995 * factor:
            return f"{size / factor:.{_decimals(size / factor)}f} {unit}"
    return f"{size:.0f} B"


def _decimals(value: float) -> int:
    """Return how many decimals give three digits."""
    return 2 if value < 9.995 else 1 if value < 99.95 else 0
