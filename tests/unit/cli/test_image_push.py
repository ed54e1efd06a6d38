import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.cli.image.push import copy, read_target
from toolkit.errors import BadInput
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner


@every_row(
    ("target", "host", "place"),
    [
        ("ssh://login/work/a.sif", None, ("login", "/work/a.sif")),
        ("ssh://ada@login:2222/work/", None, ("ada@login:2222", "/work/")),
        ("ssh://login/~/images/", None, ("login", "images/")),
        ("ssh://login/a%20b", None, ("login", "/a b")),
        ("/work/a.sif", "login", ("login", "/work/a.sif")),
        ("~/a.sif", "login", ("login", "a.sif")),
    ],
)
def test_a_place_over_ssh(target, host, place):
    assert read_target(target, host, None) == place


@every_row(
    ("target", "host"),
    [
        ("ssh://login/a", "other"),
        ("ssh://ada:secret@login/a", None),
        ("ssh:///a", None),
        ("ssh://login:99999/a", None),
        ("ftp://login/a", None),
        ("/work/a.sif", None),
        ("~bob/a.sif", "login"),
        ("a\nb", "login"),
    ],
)
def test_what_is_no_place_is_refused(target, host):
    with pytest.raises(BadInput):
        read_target(target, host, None)


@given(st.text(max_size=40))
def test_no_target_surprises(text):
    try:
        host, path = read_target("ssh://" + text, None, None)
    except BadInput:
        return
    assert host
    assert "\n" not in path


def test_a_folder_gets_the_name_of_the_file_and_nothing_twice(tmp_path):
    (tmp_path / "a.sif").write_bytes(b"x")
    first = copy(LocalRunner(), tmp_path / "a.sif", f"{tmp_path}/there/", Silent())
    again = copy(LocalRunner(), tmp_path / "a.sif", f"{tmp_path}/there/", Silent())
    assert first.path == f"{tmp_path}/there/a.sif"
    assert (first.reused, again.reused) == (False, True)
