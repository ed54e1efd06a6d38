"""Test that toolkit keeps the first and last part of long output, within a memory limit."""

import tracemalloc
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolkit.run import ends
from toolkit.run.ends import HEAD, TAIL, Ends, pieces, read_ends
from toolkit.run.local import LocalRunner


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 9), st.integers(1, 9))
def test_the_two_ends_are_those_of_the_whole_stream(chunks: list[bytes], head: int, tail: int) -> None:
    kept = Ends(head, tail)
    for chunk in chunks:
        kept.take(chunk)
    whole = b"".join(chunks)
    skipped = max(0, len(whole) - head - tail)
    assert kept.skipped == skipped
    expected = ends.join_ends(whole[:head], whole[len(whole) - tail :], skipped) if skipped else whole
    assert kept.content() == expected


def test_a_gigabyte_is_collected_in_memory_of_a_few_times_what_is_kept() -> None:
    chunk, kept = b"x" * (1 << 20), Ends()
    tracemalloc.start()
    for _ in range(1024):
        kept.take(chunk + b"")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept.skipped == (1 << 30) - HEAD - TAIL
    assert peak < 4 * (HEAD + TAIL)


def test_of_a_long_file_the_ends_are_read_and_of_a_short_one_all(tmp_path: Path) -> None:
    long, short = tmp_path / "long", tmp_path / "short"
    long.write_bytes(b"a" * HEAD + b"b" * 5 + b"c" * TAIL)
    short.write_bytes(b"short")
    runner = LocalRunner()
    assert read_ends(runner, str(long)) == ends.join_ends(b"a" * HEAD, b"c" * TAIL, 5)
    assert read_ends(runner, str(short)) == b"short"
    assert read_ends(runner, str(tmp_path / "absent")) == b""
    assert b"".join(pieces(runner, str(long), HEAD)) == b"b" * 5 + b"c" * TAIL
