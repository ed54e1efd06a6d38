"""Format sizes as text: file sizes in decimal units (MB), memory sizes in binary units (MiB)."""

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_BINARY_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def format_size(size: float) -> str:
    """Return a size in bytes as text with three digits and a decimal unit: ``312 B``, ``1.63 MB``."""
    for factor, unit in _UNITS:
        if size >= 0.9995 * factor:
            return f"{size / factor:.{_decimals(size / factor)}f} {unit}"
    return f"{size:.0f} B"


def format_memory(size: int) -> str:
    """Return a size in bytes as text with a binary unit: ``312 B``, ``64 KiB``, ``1.5 GiB``."""
    for factor, unit in _BINARY_UNITS:
        if size >= 0.99995 * factor:
            return f"{size / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"


def _decimals(value: float) -> int:
    """Return the number of decimal places that shows ``value`` with three digits: 2 for 1.63, 0 for 312."""
    return 2 if value < 9.995 else 1 if value < 99.95 else 0
