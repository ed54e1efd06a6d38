"""Test that the fast search of a log finds the same lines as a search with every pattern."""

import json
import re
from pathlib import Path

from toolkit.engine.logs import joblines, line_class, logsearch
from toolkit.engine.logs.joblines import Output, line_text
from toolkit.engine.logs.logsearch import search
from toolkit.engine.logs.signature_match import _patterns
from toolkit.knowledge.signatures import stems

RECORD = Path(__file__).parents[3] / "faults"
LOGS = [
    json.loads(line)["log"]
    for name in ("faults", "gpu", "reports", "local", "ranks", "healthy")
    for line in (RECORD / f"{name}.jsonl").read_text("utf-8").splitlines()
]
LINES = list(dict.fromkeys(line_text(line.encode()) for log in LOGS for line in re.split("[\r\n]", log)))


def positions(texts: list[bytes]) -> list[int]:
    at, found = 0, []
    for text in texts:
        found.append(at)
        at += len(text) + 1
    return found


def test_each_pattern_finds_the_lines_that_it_matches():
    texts = [text.encode() for text in LINES]
    output, at = Output(b"\n".join(texts)), positions(texts)
    found = search(output, _patterns(), 600)
    wrong = {}
    for pattern in _patterns():
        compiled = re.compile(pattern, re.MULTILINE)
        own = [place for place, text in zip(at, LINES, strict=True) if compiled.search(text)]
        if own != list(found.positions[pattern]):
            wrong[pattern] = set(own) ^ set(found.positions[pattern])
    assert wrong == {}


def test_each_line_with_a_stem_is_suspect(monkeypatch):
    monkeypatch.setattr(logsearch, "MOST_SUSPECTS", len(LINES))
    monkeypatch.setattr(logsearch, "_KEPT_ALIKE", len(LINES))
    texts = [text.encode() for text in LINES]
    shapes = [re.sub(r"\d", "0", text).lower() for text in LINES]
    own = [
        place
        for place, text in zip(positions(texts), shapes, strict=True)
        if any(stem in text for stem in stems())
    ]
    assert list(search(Output(b"\n".join(texts)), (), 600, stems()).suspects) == own


def test_suspects_of_both_ends_are_kept(monkeypatch):
    monkeypatch.setattr(logsearch, "MOST_SUSPECTS", 2)
    monkeypatch.setattr(joblines, "_PAGE", 10)
    letters = "abcdefghijklmnop"
    output = Output(
        "".join(f"{letter} failed\n" for letter in letters)
    )  # a page of the log is one or two lines here
    found = search(output, (), 6, ("fail",)).suspects
    kept = "".join(output.line(place).text[0] for place in found)
    assert 4 <= len(kept) <= 6
    assert (kept[:2], kept[-2:]) == ("ab", "op")


def test_the_likely_parts_have_the_first_row_that_matches():
    """Check that a search of the likely rows of ``faultlines.toml`` finds the same row as a full search."""
    wrong = []
    for text in LINES:
        every, likely = (
            next((row for part in parts if (row := part.row_of(text))), None)
            for parts in (line_class._parts(), line_class.likely_parts(text))
        )
        if every != likely:
            wrong.append(text)
    assert wrong == []
