"""Test how the layers of an image combine, and that toolkit refuses layers that no engine would unpack."""

import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.image.archives import PACK, tar
from tests.unit.image.test_tar import Memory
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.errors import CheckFailed
from toolkit.image.files import tree as files
from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.inflate import inflate
from toolkit.image.files.layers import LayeredTree


def united(*layers, budget: Budget | None = None) -> LayeredTree:
    tree = LayeredTree("x.tar", budget or Budget("x.tar"))
    for layer in layers:
        tree.add(Memory(tar(layer)), "x.tar: a layer")
    return tree


def shown(tree, folder="/") -> set[str]:
    found = set()
    for name in tree.names(folder):
        path = f"{folder.rstrip('/')}/{name}"
        found |= shown(tree, path) if tree.kind(path) == "folder" and tree.names(path) else {path}
    return found


def test_files_above_hide_files_below_and_folders_are_joined():
    tree = united({"a/x": "1", "a/y": "2", "b": "3"}, {"a/x": "4", "a/z": "5", "b/c": "6"}, {"./d": "7"})
    assert shown(tree) == {"/a/x", "/a/y", "/a/z", "/b/c", "/d"}
    assert tree.content("/a/x") == b"4"


def test_a_folder_takes_the_place_of_a_file_and_the_other_way():
    tree = united({"a": "1", "b/c": "2"}, {"a/": "", "b": "3"})
    assert (tree.kind("/a"), tree.kind("/b"), tree.content("/b")) == ("folder", "file", b"3")


def test_whiteouts_take_away_what_lower_layers_have():
    lower = {"a": "1", "d/x": "1", "d/y": "1", "e/x": "1", "f/g/h": "1"}
    tree = united(lower, {".wh.a": "", "d/.wh.x": "", "d/.wh.none": "", "f/.wh.g": "", "f/.wh..wh.plnk": ""})
    assert shown(tree) == {"/d/y", "/e/x", "/f"}


def test_whiteouts_leave_what_their_own_layer_has_in_whichever_order():
    lower = {"d/x": "1", "d/sub/old": "1", "e/x": "1"}
    tree = united(lower, {"d/new": "2", "d/sub/kept": "2", "d/.wh..wh..opq": "", "e/x": "2", "e/.wh.x": ""})
    assert shown(tree) == {"/d/new", "/d/sub/kept", "/e/x"}
    tree = united(lower, {"d/sub/kept": "2", "d/.wh.sub": ""})
    assert shown(tree) == {"/d/x", "/d/sub/kept", "/e/x"}


def test_of_two_members_of_one_name_the_later_counts():
    first = tar({"a": "1"})[:1024]
    tree = LayeredTree("x", Budget("x"))
    tree.add(Memory(first + tar({"a": "22"})), "x")
    assert tree.content("/a") == b"22"


def test_a_hard_link_is_the_file_that_it_names_in_its_layer_or_below():
    tree = united({"a": "1", "b": "=>a"}, {"c": "=>./a", "a": "2", "d": "=>a"})
    assert [tree.content(f"/{n}") for n in "abcd"] == [b"2", b"1", b"1", b"2"]


def test_a_hard_link_that_leads_nowhere_is_unread_and_not_absent():
    tree = BoundedTree(united({"b": "=>a", "d/": "", "e": "=>d"}), Budget("x"))
    assert files.read(tree, "/b") == b""
    assert tree.unread["/b"] == "it is a hard link to a, which does not exist"
    assert files.read(tree, "/e") == b""


def test_a_sparse_file_is_unread():
    entry = tarfile.TarInfo("hole")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": "hole"}
    tree = BoundedTree(united({"hole": entry}), Budget("x"))
    assert tree.content("/hole") == b""
    assert tree.unread["/hole"] == "the layer stores it as a sparse file"


def test_links_above_a_name_are_followed_within_the_image():
    lower = {"usr/lib/a": "1", "lib": "->usr/lib", "up": "->../../usr", "abs": "->/usr/lib"}
    tree = united(lower, {"lib/b": "2", "up/c": "2", "abs/d": "2"})
    assert shown(tree) == {"/usr/lib/a", "/usr/lib/b", "/usr/lib/d", "/usr/c", "/lib", "/up", "/abs"}
    assert shown(united(lower, {"lib/": "", "lib/b": "2"})) >= {"/lib/b", "/usr/lib/a"}


def test_absolute_names_are_below_the_root():
    tree = united({"/etc/passwd": "1", "//etc//./group": "2", "a/../b": "3"})
    assert {"/etc/passwd", "/etc/group", "/b"} <= shown(tree)


@every_row("name", ["../../etc/passwd", "a/../../b", "..", "/../x"])
def test_names_that_lead_out_are_refused(name):
    layer = {name: "1"}
    if name == "/../x":
        with pytest.raises(CheckFailed, match="points outside the image"):
            united(layer)
        return
    with pytest.raises(CheckFailed, match=r"x\.tar: .*points outside the image"):
        united(layer)


@every_row(
    ("layer", "why"),
    [
        ({"a": "1", "a/b": "2"}, "not a folder"),
        ({"a": "->b", "b": "->a", "a/x": "1"}, "form a loop"),
        ({"n" * 256: "1"}, "a name of more than 255 characters"),
        ({"/n" * 3000: "1"}, "a path of 6000 characters"),
        ({"a": "->" + "b/" * 3000}, "the target of a link in the image has 6000 characters"),
    ],
)
def test_what_no_engine_would_unpack_is_refused(layer, why):
    with pytest.raises(CheckFailed, match=why) as caught:
        united(layer)
    assert "\n" not in caught.value.message


def test_files_that_fill_the_memory_are_given_up():
    budget = Budget("x.tar")
    budget._index = 10_000
    with pytest.raises(CheckFailed, match="lists more files than toolkit's limit"):
        united({f"d/{n}": "" for n in range(100)}, budget=budget)


def test_a_link_in_a_link_does_not_eat_the_time():
    budget = Budget("x.tar", looks=10_000)
    layer = {"a": "->" + "./" * 1500 + "b", **{f"a/{n % 2}/{n}": "" for n in range(100)}}
    with pytest.raises(CheckFailed, match="form a loop"):
        united(layer, budget=budget)


@every_row("kind", ["gzip", "zstd"])
def test_packed_layers_are_read_as_plain_ones(kind):
    library = b"\x7fELF" + bytes(range(256)) * 1000
    layer = {"lib.so": library, "a.py": "x" * 70_000, "etc/conf": "y", "other": "=>lib.so"}
    budget = Budget("x")
    tree = LayeredTree("x", budget)
    tree.add(inflate(Memory(PACK[kind](tar(layer))), "x", budget), "x")
    assert tree.content("/lib.so") == tree.content("/other") == library
    assert tree.content("/lib.so", 10) == library[:10]
    assert tree.content("/etc/conf") == b"y"
    assert tree.content("/a.py", 70_000) == b"x" * 70_000
    assert tree.content("/a.py", 5) == b"x" * 5


def test_what_was_read_is_held_within_bounds(monkeypatch):
    monkeypatch.setattr("toolkit.image.files.layers._HELD", 100)
    tree = united({"a": "1" * 60, "b": "2" * 60})
    for _ in range(3):
        assert (tree.content("/a"), tree.content("/b")) == (b"1" * 60, b"2" * 60)
        assert tree._held <= 100


PARTS = st.sampled_from(("a", "b", "c", ".wh.a", ".wh.b", ".wh..wh..opq", "..", "."))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
CONTENTS = st.sampled_from(("1", "->a", "->../b", "->/c/a", "->.", "=>a", "=>a/b", ""))


@settings(max_examples=count(75, 300), deadline=None)
@given(st.lists(st.dictionaries(PATHS, CONTENTS, max_size=6), max_size=4))
def test_layers_of_any_content_give_a_tree_or_an_error_of_ours(layers):
    try:
        tree = united(*layers)
    except CheckFailed:
        return
    for path in shown(tree):
        assert tree.kind(path) is not None
        assert not path.rpartition("/")[2].startswith(".wh.") or tree.kind(path) == "folder"
        if tree.kind(path) == "link":
            assert tree.target(path)
