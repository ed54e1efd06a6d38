"""Split the chunks of a stream into lines."""

from toolkit.run.command import OnLine

_LONGEST = 4 << 20
"""The largest number of bytes of an unfinished line that toolkit keeps in memory."""


class Lines:
    """Passes each line to a function as soon as the line is complete.

    The run time is proportional to the size of the input, even if a progress bar or a core dump writes lines
    of megabytes. To limit the use of memory, the class passes a line of more than 4 MiB in parts.
    """

    def __init__(self, on_line: OnLine) -> None:
        self._on_line = on_line
        self._rest: list[bytes] = []
        self._size = 0

    def take(self, chunk: bytes) -> None:
        """Call the function with each line that ``chunk`` completes, and keep the rest for the next call."""
        first, *following = chunk.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        if self._size > _LONGEST:
            self.end()
        if not following:
            return
        *whole, rest = following
        for line in (b"".join(self._rest), *whole):
            self._say(line)
        self._rest, self._size = [rest], len(rest)

    def end(self) -> None:
        """Pass the unfinished last line to the function, if there is one."""
        if last := b"".join(self._rest):
            self._say(last)
        self._rest, self._size = [], 0

    def _say(self, line: bytes) -> None:
        self._on_line(line.decode("utf-8", "replace").rstrip("\r"))
