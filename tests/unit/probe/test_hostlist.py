"""Test lists of node names: from the short form ``node[1-2]`` to the names, and back."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.probe.hostlist import expand, fold


@every_row(
    ("names", "short"),
    [
        (["node2", "node1", "node4"], "node[1-2,4]"),
        (["node9", "node10", "node11"], "node[9-11]"),
        (["n001", "n002", "n010"], "n[001-002,010]"),
        (["login", "gpu7"], "login,gpu7"),
        ([], ""),
    ],
)
def test_names_are_folded(names, short):
    assert fold(names) == short


@every_row(
    ("text", "names"),
    [
        ("node[1-2,4],login", ("node1", "node2", "node4", "login")),
        ("r[1-2]n[01-02]", ("r1n01", "r1n02", "r2n01", "r2n02")),
        ("node7", ("node7",)),
        ("odd[x-y]", ("odd[x-y]",)),
        ("n[1-999999999]", ("n[1-999999999]",)),
    ],
)
def test_lists_are_unfolded(text, names):
    assert expand(text) == names


@given(st.sets(st.from_regex(r"(n|gpu-)[1-9][0-9]{0,3}", fullmatch=True)))
def test_what_is_folded_can_be_unfolded(names):
    assert set(expand(fold(names))) == names


@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    expand(text)
    fold([text])
