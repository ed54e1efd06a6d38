"""Test that toolkit splits output into lines, also if it arrives in pieces of any size."""

import os
import sys

from hypothesis import given
from hypothesis import strategies as st

from toolkit.run.command import Command
from toolkit.run.lines import Lines
from toolkit.run.local import LocalRunner


@given(st.lists(st.binary(max_size=20)))
def test_lines_are_those_of_the_whole(pieces: list[bytes]):
    said: list[str] = []
    cut = Lines(said.append)
    for piece in pieces:
        cut.take(piece)
    cut.end()
    whole = b"".join(pieces).split(b"\n")
    expected = whole if whole[-1] else whole[:-1]
    assert said == [line.decode("utf-8", "replace").rstrip("\r") for line in expected]


def test_a_line_is_handed_over_once_it_is_whole_and_the_last_one_at_the_end():
    said: list[str] = []
    cut = Lines(said.append)
    cut.take(b"one\r\ntw")
    assert said == ["one"]
    cut.take(b"o")
    cut.end()
    assert said == ["one", "two"]
    cut.end()
    assert said == ["one", "two"]


class _Counted(bytes):
    looked = 0

    def split(self, *words):  # type: ignore[override]
        _Counted.looked += len(self)
        return super().split(*words)


def test_each_byte_is_looked_at_once():
    cut = Lines(lambda line: None)
    for _ in range(100):
        cut.take(_Counted(b"x" * 1000))
    cut.end()
    assert _Counted.looked == 100_000


def test_a_line_of_many_megabytes_comes_in_parts_of_bounded_size():
    said: list[str] = []
    size = 1 << 24
    program = f"import os\nfor _ in range({size >> 16}): os.write(1, b'x' * (1 << 16))"
    done = LocalRunner().stream(Command((sys.executable, "-c", program), env=dict(os.environ)), said.append)
    assert done.ok
    assert sum(map(len, said)) == size
    assert max(map(len, said)) <= (4 << 20) + (1 << 16)
