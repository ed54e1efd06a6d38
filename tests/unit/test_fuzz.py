"""Run a part of ``make fuzz``, and check that the fuzz test detects faults."""

import random
import time

from tests.fuzz import case, hostile, terminal
from tests.fuzz.kind import Kind
from tests.fuzz.run import fuzz, summary
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import BadInput

COUNT = count(100, 300)


def test_damaged_images_and_facts_give_facts_or_an_error_of_ours(tmp_path):
    outcomes = fuzz(COUNT, 2026, tmp_path / "keep")
    assert [o.number for o in outcomes] == list(range(COUNT))
    assert not [o for o in outcomes if o.fault], summary(outcomes, 2026, 0)
    # Generated cases are useful only if toolkit accepts some and refuses others.
    came = {(o.kind.partition(",")[0], o.came) for o in outcomes}
    assert {("image", "facts"), ("image", "CheckFailed"), ("facts", "facts"), ("facts", "BadInput")} <= came
    assert {("bundle", "installed"), ("bundle", "BadInput")} <= came
    assert ("lock", "BadInput") in came
    assert not (tmp_path / "keep").exists()


def test_the_same_number_makes_the_same_case(tmp_path):
    made = []
    for name in ("a", "b"):
        for number in range(12):
            (tmp_path / name / str(number)).mkdir(parents=True)
            kind, path = case.make(number, 1, tmp_path / name / str(number))
            made.append((name, kind.name, path.read_bytes() if path.is_file() else None))
    assert [m[1:] for m in made if m[0] == "a"] == [m[1:] for m in made if m[0] == "b"]


def _raising(error):
    def reads(path, number):
        raise error

    return reads


def _writing(path, number):
    (path.parent.parent / "outside").write_text("x")
    return "facts"


def _hungry(path, number):
    assert len(bytearray(400 << 20)) > 0
    return "facts"


def _slow(path, number):
    begun = time.process_time()
    while time.process_time() < begun + 5:
        pass
    return "facts"


@every_row(
    ("reads", "came", "fault"),
    [
        (_raising(KeyError("x")), "KeyError", "Traceback"),
        (_raising(MemoryError()), "MemoryError", "Traceback"),
        (_raising(BadInput("two\nlines")), "BadInput", "several lines"),
        (_raising(BadInput("x\x1b[31m")), "BadInput", "cannot be shown"),
        (_raising(BadInput("x" * 2000)), "BadInput", "cannot be shown"),
        (_raising(BadInput(hostile.SECRET)), "BadInput", "outside the image"),
        (_writing, "facts", "outside the cache have changed"),
        (_hungry, "facts", "MiB of memory"),
        (_slow, "late", "more than 1 s"),
        (_raising(BadInput("as it should be")), "BadInput", ""),
    ],
)
def test_what_should_not_happen_is_noticed(tmp_path, monkeypatch, reads, came, fault):
    monkeypatch.setattr(case, "KINDS", (Kind("image, x", 1, lambda chance, folder: b"x", reads),))
    if reads is _slow:
        monkeypatch.setattr(case, "SECONDS", 1)
    (tmp_path / "case").mkdir()
    found = case.run(3, 1, tmp_path / "case")
    assert found.came == came
    assert fault in found.fault
    assert bool(found.fault) == bool(fault)


def test_a_process_that_dies_takes_one_case_with_it(tmp_path, monkeypatch):
    import os

    run = case.run

    def dying(number, seed, folder):
        if number == 2:
            os._exit(7)
        return run(number, seed, folder)

    monkeypatch.setattr(case, "run", dying)
    outcomes = fuzz(5, 1, tmp_path / "keep", hands=1)
    assert [(o.number, o.came) for o in outcomes if o.fault] == [(2, "died")]
    assert len(outcomes) == 5
    assert "ended with 7" in (tmp_path / "keep" / "1-2" / "fault.txt").read_text()


@every_row("text", terminal.TEXTS)
def test_a_control_that_reaches_a_terminal_is_noticed(text):
    assert terminal.controls(f"a\r\n\x1b[31mred\x1b[0m\t{text}".encode())


def test_what_toolkit_writes_itself_is_no_control():
    assert terminal.controls("\x1b[1mMPI\x1b[0m\topenmpi é 日本\r\n".encode()) == []


def test_a_command_is_looked_at_on_a_terminal():
    shown = terminal.shown(("image", "inspect", "/nothing/is/here"))
    assert b"/nothing/is/here" in shown
    assert shown.endswith(b"\r\n")


def test_hostile_texts_are_where_a_command_shows_them(tmp_path):
    """The output contains the malicious text, so `make fuzz` can find control characters in it."""
    chance = random.Random(1)
    (tmp_path / "case").mkdir()
    path = terminal.make(chance, tmp_path / "case")
    assert b"distribution" in terminal.shown(("image", "inspect", str(path)))
