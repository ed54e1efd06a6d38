"""Test the changes of ``toolkit adapt`` in many scripts; ``golden.py`` writes the expected files."""

import ast

from tests.unit.program.adapt.golden import FOLDER, SCRIPTS, made
from tests.unit.tables import every_row
from toolkit.job.adapt import adapt


@every_row("name", SCRIPTS)
def test_a_script_is_changed_as_recorded(name):
    assert made(name) == (FOLDER / f"{name}.diff").read_text()


def test_the_record_is_of_these_scripts():
    assert sorted(path.stem for path in FOLDER.glob("*.diff")) == SCRIPTS
    assert len(SCRIPTS) >= 12


@every_row("name", SCRIPTS)
def test_what_was_adapted_joins_its_ranks(name, tmp_path):
    _, content = adapt(FOLDER / f"{name}.py")
    (tmp_path / "again.py").write_bytes(content)
    again, same = adapt(tmp_path / "again.py")
    assert again.joins
    assert (again.changes, again.diff, same) == ((), "", content)


@every_row("name", SCRIPTS)
def test_comments_and_line_ends_stay(name, tmp_path):
    text = (FOLDER / f"{name}.py").read_text()
    (tmp_path / "dos.py").write_bytes(text.replace("\n", "\r\n").encode())
    _, content = adapt(tmp_path / "dos.py")
    assert content.count(b"\n") == content.count(b"\r\n")
    unix = content.decode().replace("\r\n", "\n")
    assert unix == adapt(FOLDER / f"{name}.py")[1].decode()
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line and "'" not in line]
    assert all(comment in unix for comment in comments)
    ast.parse(unix)
