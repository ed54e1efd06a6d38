"""Test that a lesson runs in a real shell, and that differences from its text are reported."""

from itertools import chain, repeat
from types import SimpleNamespace

import pytest

from tests.courses import desk as desks
from tests.courses import run as courses
from tests.courses.desk import CLASSROOM, Desk, NoEnd, Shell

PAGE = """
```text title="in/name.txt"
Ada
```

```console
$ x=5; cd in
$ cat name.txt; echo $x >&2
Ada
4
$ sh -c 'exit 3'  # ends with 3
```

<!-- keep: in/name.txt as images/name.txt -->
"""


@pytest.fixture
def desk(tmp_path):
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", "class0123", tmp_path / "shared")


def test_commands_go_on_where_the_one_before_left(desk):
    result = courses.run(PAGE, "p.md", desk)
    assert (result.wrong, result.unlike) == ([], [])
    assert [lines for _, lines in result.outputs] == [[], ["Ada", "5"], []]
    assert [content for _, content in result.kept] == [b"Ada\n"]


def test_other_words_and_another_status_are_told_with_their_line(desk):
    unlike = courses.run(PAGE.replace("Ada\n4", "Eve\n4"), "p.md", desk)
    assert unlike.unlike[0].startswith("p.md:8: printed otherwise: $ cat name.txt")
    assert "-Eve" in unlike.unlike[0]
    assert "+Ada" in unlike.unlike[0]


def test_a_page_is_left_where_a_command_ends_otherwise(desk):
    result = courses.run(PAGE.replace("exit 3'", "exit 4'"), "p.md", desk)
    assert result.wrong[0].startswith("p.md:11: ended with 4")
    assert not result.kept


def test_a_file_that_was_not_made_is_told(desk):
    result = courses.run("<!-- keep: a.svg as images/a.svg -->\n", "p.md", desk)
    assert result.wrong == ["p.md:1: a.svg was not made"]


def test_a_command_without_end_is_stopped_and_told(desk, monkeypatch):
    # The time limit starts with the shell's first output, because starting the shell may take any time.
    page = "```console\n$ echo begun; sleep 600\n```\n"
    clock = chain([0, 0], repeat(1000))
    monkeypatch.setattr(desks, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    result = courses.run(page, "p.md", desk, timeout=500)
    assert "no end within 500 s" in result.wrong[0]
    assert "begun" in result.wrong[0]


def test_a_command_that_ends_the_shell_is_told(desk):
    with Shell(desk.folder, desk.environment()) as shell, pytest.raises(NoEnd):
        shell.run("exit 0", 5)


def test_the_cluster_of_the_pages_is_another_one_behind_the_scenes(desk):
    assert desk.typed(f"toolkit cluster up --name {CLASSROOM}") == "toolkit cluster up --name class0123"
    assert desk.typed(f"cat my-{CLASSROOM}.toml") == f"cat my-{CLASSROOM}.toml"
    assert desk.shown("cluster class0123, 2 nodes") == f"cluster {CLASSROOM}, 2 nodes"


def test_a_reader_sees_no_folder_of_the_machine_that_ran_it(desk):
    line = f"{desk.folder}/out.svg {desk.folder} {desk.environment()['XDG_CONFIG_HOME']}/toolkit"
    assert desk.shown(line) == "out.svg . ~/.config/toolkit"


def test_a_page_gets_the_variables_that_it_is_given(tmp_path):
    (tmp_path / "desk").mkdir()
    desk = Desk(tmp_path / "desk", "class0123", tmp_path / "shared", {"REGISTRY": "127.0.0.1:5000"})
    result = courses.run("```console\n$ echo at $REGISTRY\nat 1\n```\n", "p.md", desk)
    assert result.outputs[0][1] == ["at 127.0.0.1:5000"]


def test_what_was_printed_is_written_into_the_page_and_files_beside_it(desk, tmp_path):
    page = tmp_path / "p.md"
    page.write_text(PAGE.replace("Ada\n4\n", ""))
    courses.write(page, courses.run(page.read_text(), "p.md", desk))
    assert page.read_text() == PAGE.replace("Ada\n4\n", "Ada\n5\n")
    assert (tmp_path / "images" / "name.txt").read_bytes() == b"Ada\n"
    assert not list(tmp_path.glob("**/.*.part"))


def test_a_page_that_is_none_is_refused_before_a_cluster_is_made(tmp_path, capsys):
    page = tmp_path / "p.md"
    page.write_text("```console\n")
    assert courses.main([str(page)]) == 2
    assert "the block has no end" in capsys.readouterr().err
    assert courses.main([str(tmp_path / "absent.md")]) == 2


def test_without_an_image_it_says_how_to_make_one(tmp_path, capsys, monkeypatch):
    page = tmp_path / "p.md"
    page.write_text("```console\n$ true\n```\n")
    monkeypatch.setattr(courses, "IMAGE", tmp_path / "absent.sif")
    assert courses.main([str(page)]) == 2
    assert "absent.sif is not there" in capsys.readouterr().err
