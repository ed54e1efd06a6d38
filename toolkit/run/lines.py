"""Cut what comes in pieces into lines."""

from toolkit.run.command import OnLine


class Lines:
    """Hands over each line as soon as it is whole.

    The work grows with what comes, however long a line is: a bar of progress or a core dump may have no
    line break in megabytes.
    """

    def __init__(self, on_line: OnLine) -> None:
        self._on_line = on_line
        self._rest: list[bytes] = []

    def take(self, chunk: bytes) -> None:
        """Hand over the lines that end in ``chunk``, and keep what follows them."""
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        if not others:
            return
        *whole, rest = others
        for line in (b"".join(self._rest), *whole):
            self._say(line)
        self._rest = [rest]

    def end(self) -> None:
        """Hand over a last line that has no line break."""
        if last := b"".join(self._rest):
            self._say(last)
        self._rest = []

    def _say(self, line: bytes) -> None:
        self._on_line(line.decode("utf-8", "replace").rstrip("\r"))
