"""A file of an image, of which only the needed pages are read."""

from collections.abc import Callable

_PAGE = 1 << 17
"""The size of a squashfs block that mksquashfs writes. A part of a block cannot be unpacked."""
_MOST = 32 << 20


class Pages:
    """``read`` returns the bytes at an offset, fewer at the end of the file; pages that were read are
    kept.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._pages: dict[int, bytes] = {}
        self.held = 0

    def take(self, at: int, size: int) -> bytes:
        """Return a part of the file; fewer bytes at its end, within the limit of the image."""
        if at < 0 or size <= 0:
            return b""
        size = min(size, _MOST)
        parts = []
        for number in range(at // _PAGE, (at + size - 1) // _PAGE + 1):
            page = self._page(number)
            parts.append(page)
            if len(page) < _PAGE:
                break
        start = at % _PAGE
        return b"".join(parts)[start : start + size]

    def _page(self, number: int) -> bytes:
        if number not in self._pages:
            self._pages[number] = self._read(number * _PAGE, _PAGE)
            self.held += len(self._pages[number])
        return self._pages[number]


class _Whole(Pages):
    """A file in memory, so that no page of it is copied."""

    def __init__(self, content: bytes) -> None:
        super().__init__(lambda at, size: content[at : at + size])
        self._content, self.held = content, len(content)

    def take(self, at: int, size: int) -> bytes:
        return self._content[at : at + size] if at >= 0 and size > 0 else b""


def pages_of(content: bytes) -> Pages:
    """Return pages of content in memory."""
    return _Whole(content)
