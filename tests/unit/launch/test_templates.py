"""Test that the golden scripts show every line of the templates in ``slurm``."""

import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from tests.unit.launch import scripts, site_scripts
from tests.unit.launch.test_local import CASES, local_golden
from toolkit import render
from toolkit.data import shipped_folder

FOLDER = shipped_folder("slurm")
STATEMENT = re.compile(r"\s*\{[%#]")
MARK = re.compile("\x01([^\x01]*)\x01")


class MarkedLoader(jinja2.FileSystemLoader):
    def get_source(self, environment, template):
        text, *rest = super().get_source(environment, template)
        lines = text.splitlines(keepends=True)
        return "".join(marked(template, number, line) for number, line in enumerate(lines, 1)), *rest


def marked(template: str, number: int, line: str) -> str:
    return line if not line.strip() or STATEMENT.match(line) else f"\x01{template}:{number}\x01{line}"


def texts() -> Iterator[str]:
    yield from (scripts.made(name) for name in scripts.CASES)
    yield from (site_scripts.made(name) for name in site_scripts.names())
    yield from (local_golden(name) for name in CASES)
    yield scripts.relay()


def test_every_line_of_a_template_is_in_a_golden_script(monkeypatch: pytest.MonkeyPatch):
    environment = render._environment("slurm", one_line=False).overlay(
        loader=MarkedLoader(FOLDER), cache_size=400
    )
    monkeypatch.setattr(render, "_environment", lambda kind, one_line: environment)
    seen = {name for text in texts() for name in MARK.findall(text)}
    every = {
        f"{file.relative_to(FOLDER)}:{number}"
        for file in Path(FOLDER).rglob("*.j2")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if marked("", number, line) != line
    }
    assert len(every) > 300
    assert not (lost := sorted(every - seen)), lost
