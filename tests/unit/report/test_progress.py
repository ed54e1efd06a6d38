"""Test the progress display on a real terminal, with a replay of its control codes, and in a log."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

_FOLLOWING = """
import time
from toolkit.report.progress import Progress
with Progress() as tell:
    tell.step("Job 7 runs on node[1-2]")
    for number in range(3):
        time.sleep(0.15)
        tell.output(f"line {number}")
        tell.output(f"more {number}")
        time.sleep(0.1)
        tell.detail(f"epoch {number} of 3, 100 images/s " + "x" * 200)
    time.sleep(0.2)
    tell.output("last")
"""

_PIECES = re.compile(r"\r|\n|\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|[^\r\n\x1b]+")


def on_terminal(code, out=None):
    """Run ``code`` with standard error on a terminal, and return the terminal's text."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=out or theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # the last process closed the terminal
        pass
    os.close(ours)
    assert process.wait(30) == 0
    return said.decode()


def shown(said):
    """Interpret toolkit's terminal codes in the output, and return the visible lines."""
    screen, row, column = [""], 0, 0
    for piece in _PIECES.finditer(said):
        text = piece[0]
        if text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, 0
            screen += [""] * (row + 1 - len(screen))
        elif piece[2] == "A":
            row = max(row - int(piece[1] or 1), 0)
        elif piece[2] == "K":
            screen[row] = ""
        elif not text.startswith("\x1b"):
            line = screen[row].ljust(column)
            screen[row] = line[:column] + text + line[column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in screen]


def test_the_lines_of_a_job_stand_clear_of_the_progress_below_them():
    said = on_terminal(_FOLLOWING)
    lines = shown(said)
    output = [f"{word} {number}" for number in range(3) for word in ("line", "more")]
    assert lines[:7] == [*output, "last"]
    assert re.fullmatch(r"✓ Job 7 runs on node\[1-2\] \(\d\.\d s\)", lines[7])
    assert not any(lines[8:])
    assert "epoch 2 of 3" in said


def test_what_is_asked_for_reaches_its_file_while_progress_is_on_the_terminal(tmp_path):
    with (tmp_path / "out").open("w") as out:
        said = on_terminal(_FOLLOWING.replace("tell.output", "print"), out)
    assert (tmp_path / "out").read_text().splitlines()[-2:] == ["more 2", "last"]
    assert "more" not in said


def test_no_line_of_progress_is_longer_than_the_terminal():
    assert max(len(line) for line in shown(on_terminal(_FOLLOWING).replace("\x1b[2K", "\n"))) <= 80


def test_in_a_log_there_are_dated_lines_and_the_output_stands_alone():
    done = subprocess.run([sys.executable, "-c", _FOLLOWING], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["line 0", "more 0"]
    assert re.fullmatch(r"\d\d:\d\d:\d\d Job 7 runs on node\[1-2\]\n", done.stderr)
