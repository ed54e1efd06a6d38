"""Read a file of an image in pages of 128 KiB: read only the pages that a caller needs, and cache them."""

from collections.abc import Callable

_PAGE = 1 << 17
"""The size of a page in bytes: mksquashfs's default block size. toolkit can unpack only whole blocks."""
_MOST = 32 << 20


class Pages:
    """A file that toolkit reads in pages: it reads a page when a caller needs it, and then caches the page.

    ``read(offset, size)`` returns ``size`` bytes of the file, or fewer bytes at the end of the file. ``held``
    is the number of cached bytes.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._pages: dict[int, bytes] = {}
        self.held = 0

    def take(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes of the file from ``offset``, at most 32 MiB."""
        if offset < 0 or size <= 0:
            return b""
        size = min(size, _MOST)
        parts = []
        for number in range(offset // _PAGE, (offset + size - 1) // _PAGE + 1):
            page = self._page(number)
            parts.append(page)
            if len(page) < _PAGE:
                break
        start = offset % _PAGE
        return b"".join(parts)[start : start + size]

    def _page(self, number: int) -> bytes:
        if number not in self._pages:
            self._pages[number] = self._read(number * _PAGE, _PAGE)
            self.held += len(self._pages[number])
        return self._pages[number]


class _Whole(Pages):
    """A file whose whole content is already in memory."""

    def __init__(self, content: bytes) -> None:
        super().__init__(lambda at, size: content[at : at + size])
        self._content, self.held = content, len(content)

    def take(self, offset: int, size: int) -> bytes:
        return self._content[offset : offset + size] if offset >= 0 and size > 0 else b""


def pages_of(content: bytes) -> Pages:
    """Return the pages of a file whose content is in memory."""
    return _Whole(content)
