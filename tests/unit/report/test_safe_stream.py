"""Test that ``SafeStream`` escapes control characters, and that every module prints through it."""

import io
import re
from pathlib import Path

import click

from tests.unit.tables import every_row
from toolkit.report.plain import add_style
from toolkit.report.safe_stream import SafeStream, unfiltered_stream

ROOT = Path(__file__).parents[3] / "toolkit"
OWN_STREAMS = {"report/safe_stream.py", "cli/frame/streams.py"}
AROUND = (
    # Code that writes without the stream, and the modules that may contain such code.
    (r"\bprint\(", {"report/progress.py"}),
    (r"click\.(?:echo|secho|style|echo_via_pager|get_(?:text|binary)_stream)\b", {"cli/frame/say.py"}),
    (r"click\.(?:prompt|confirm)\b", {"cli/doctor/ask.py", "cli/init.py"}),  # readline prints the prompt
    (r"unfiltered\(", {"report/safe_stream.py", "report/progress.py"}),
    (r"sys\.(?:stdout|stderr)\.(?:write|buffer)|sys\.__std(?:out|err)__", {"run/relay.py"}),
    (r"/dev/(?:tty|std(?:out|err)|fd)", {"cli/frame/files.py"}),
    (r"\bos\.write\([12],|\bConsole\(", {"report/progress.py"}),
)


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def test_a_terminal_gets_colours_of_toolkit_and_a_file_none():
    for kind, written in ((Terminal, b"\x1b[1mx\x1b[0m\\u001b[1m"), (io.TextIOWrapper, b"x\\u001b[1m")):
        raw = io.BytesIO()
        stream = SafeStream(kind(raw, encoding="utf-8"))
        assert stream.write(add_style("x", "1") + "\x1b[1m") > 0
        stream.flush()
        assert raw.getvalue() == written


def test_exact_bytes_reach_a_file_and_are_shown_on_a_terminal():
    for kind, written in ((Terminal, b"\\u001b\xef\xbf\xbd"), (io.TextIOWrapper, b"\x1b\xff")):
        raw = io.BytesIO()
        stream = SafeStream(kind(raw, encoding="utf-8"))
        stream.write_exact(b"\x1b\xff")
        assert raw.getvalue() == written


def test_a_library_finds_no_bytes_below_the_door():
    stream = SafeStream(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert not hasattr(stream, "buffer")
    assert unfiltered_stream(stream) is not stream


@every_row(("pattern", "allowed"), AROUND, ids=[pattern for pattern, _ in AROUND])
def test_no_module_prints_around_the_door(pattern, allowed):
    found = set()
    for file in ROOT.rglob("*.py"):
        name = file.relative_to(ROOT).as_posix()
        code = re.sub(r'""".*?"""|#.*', "", file.read_text(), flags=re.DOTALL)
        # Trainers run in images without toolkit's report modules and print a job's output directly.
        if not name.startswith("trainers/") and re.search(pattern, code):
            found.add(name)
    assert found <= allowed


def test_bytes_of_a_library_pass_the_filter_too() -> None:
    below = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    click.echo(b"plain,show\x1b[2J", file=SafeStream(below))
    below.flush()
    assert below.buffer.getvalue() == b"plain,show\\u001b[2J\n"
