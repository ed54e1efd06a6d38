"""Test that toolkit refuses a malicious bundle with one line and exit code 2, and leaves no file."""

import hashlib
import tarfile

import pytest
from click.testing import CliRunner

from tests.unit.image.bundles import (
    INDEX,
    SUMS,
    changed_lock,
    contents,
    escape,
    members,
    packed,
    plain,
    special,
    sums,
    write_bundle,
)
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.data import shipped_folder
from toolkit.errors import ToolkitError

GOOD = contents()
STRAY = f"files/{hashlib.sha256(b'x').hexdigest()}/x"


def places(tmp_path, monkeypatch):
    """Put toolkit's folders into ``tmp_path``, with the folder ``outside``, which toolkit must not change."""
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    return tmp_path


@pytest.fixture
def home(tmp_path, monkeypatch):
    return places(tmp_path, monkeypatch)


def unbundle(path, *words):
    return CliRunner().invoke(command, ["unbundle", str(path), *words], obj={"verbose": False, "quiet": True})


def to(place):
    """Return a relative path to ``place``; 12 times ``../`` leads to the root from any test folder."""
    return f"{'../' * 12}{str(place).lstrip('/')}"


def listing(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refused(home, data, *words):
    """Unbundle ``data``; check exit code 2, a one-line error and that no file is left; return the error's
    message.
    """
    (home / "evil.tar").write_bytes(data)
    (home / "cache").mkdir()
    before = listing(home)
    error = unbundle(home / "evil.tar", *words).exception
    assert isinstance(error, ToolkitError), repr(error)
    assert error.code == 2
    assert "\n" not in error.message
    assert len(error.message) < 1000
    assert error.message.isprintable()
    assert listing(home) == before
    return error.message


def test_a_sound_one_is_installed(home):
    done = unbundle(write_bundle(home / "good.tar", GOOD))
    assert done.exit_code == 0, repr(done.exception)
    for name, content in GOOD.items():
        place = {"files": home / "cache", "recipes": home / "config" / "toolkit"}.get(name.split("/")[0])
        assert place is None or (place / name).read_bytes() == content


def test_links_deeper_than_a_path_can_be_do_not_lead_outside(home):
    assert "evil.tar" in refused(home, packed(escape(to(home / "outside"))))
    assert [path.name for path in (home / "outside").iterdir()] == ["precious"]


def test_links_deeper_than_a_path_can_be_behind_a_sound_beginning(home):
    refused(home, packed([*members(GOOD), *escape(to(home / "outside"))]))


EXTRA = {
    "symbolic link": special("wheels/a", tarfile.SYMTYPE, "/etc/passwd"),
    "hard link": special("wheels/a", tarfile.LNKTYPE, "install.sh"),
    "character device": special("wheels/a", tarfile.CHRTYPE),
    "block device": special("wheels/a", tarfile.BLKTYPE),
    "FIFO": special("wheels/a", tarfile.FIFOTYPE),
    "folder": special("wheels/a", tarfile.DIRTYPE),
    "unknown kind": special("wheels/a", b"Z"),
    "GNU sparse": plain("wheels/a", b"", type=tarfile.GNUTYPE_SPARSE),
    "PAX sparse": plain(
        "wheels/a", b"x", pax_headers={"GNU.sparse.name": "wheels/a", "GNU.sparse.major": "1"}
    ),
    "parent folder": plain("../outside/written", b"x"),
    "parent folder within": plain("files/../../outside/written", b"x"),
    "absolute": plain("/outside/written", b"x"),
    "PAX path": plain("wheels/a", b"x", pax_headers={"path": "../outside/written"}),
    "hidden": plain(".bashrc", b"x"),
    "folder of no meaning": plain("bin/toolkit", b"x"),
    "name of 9,000 letters": plain("wheels/" + "a" * 9000, b"x"),
    "newline": plain("wheels/a\nb", b"x"),
    "escape sequence": plain("wheels/\x1b[2J", b"x"),
    "not listed": plain("wheels/a-1.whl", b"x"),
    "twice": plain("install.sh", b"#!/bin/sh\n"),
    "twice by case": plain("INSTALL.sh", b"#!/bin/sh\n"),
    "second list": plain(SUMS, b""),
}


@every_row("extra", EXTRA.values(), ids=EXTRA)
@every_row("first", [False, True])
def test_a_member_that_no_bundle_has_is_refused(tmp_path, monkeypatch, extra, first):
    home = places(tmp_path, monkeypatch)
    found = members(GOOD)
    refused(home, packed([extra, *found] if first else [*found, extra]))


@every_row(
    "name",
    [
        "../outside/x",
        "/etc/x",
        "wheels/.x",
        "wheels/a/b",
        "x",
        "recipes/A.toml",
        "recipes/../x.toml",
        SUMS,
        "wheels/",
    ],
)
def test_a_list_of_names_that_no_bundle_has_is_refused(tmp_path, monkeypatch, name):
    home = places(tmp_path, monkeypatch)
    assert "is not allowed in a bundle" in refused(home, packed(members({**GOOD, name: b"x"})))


@every_row("names", [("sif/a.sif", "sif/A.sif"), ("wheels/a.whl", "wheels/A.whl")])
def test_names_that_differ_only_by_case_are_refused(tmp_path, monkeypatch, names):
    home = places(tmp_path, monkeypatch)
    files = contents(sifs=[name for name in names if name.startswith("sif/")])
    assert "upper and lower case count as equal" in refused(
        home, packed(members({**files, **dict.fromkeys(names, b"x")}))
    )


def test_a_name_that_is_listed_twice_is_refused(home):
    lines = sums(GOOD) + sums({"install.sh": b"another"})
    assert "names install.sh twice" in refused(home, packed([plain(SUMS, lines), *members(GOOD)[1:]]))


def test_more_files_than_any_bundle_has_are_refused(home):
    lines = b"".join(b"%064x  wheels/a%d\n" % (n, n) for n in range(20_001))
    assert "at most 20000" in refused(home, packed([plain(SUMS, lines), plain(INDEX, b"{}")]))


@every_row("name", [SUMS, INDEX])
def test_a_list_or_index_of_many_megabytes_is_refused(tmp_path, monkeypatch, name):
    home = places(tmp_path, monkeypatch)
    found = [plain(*(name, bytes(17 << 20))) if m[0].name == name else m for m in members(GOOD)]
    assert f"{name} is larger than 16 MiB" in refused(home, packed(found))


@every_row("path", [name for name in GOOD if not name.startswith("files/")] + [STRAY])
def test_a_file_with_another_content_is_refused_whichever_it_is(tmp_path, monkeypatch, path):
    home = places(tmp_path, monkeypatch)
    files = {**GOOD, STRAY: b"x"} if path == STRAY else GOOD
    found = [(m[0], m[1][:-1] + b"\0") if m[0].name == path else m for m in members(files)]
    refused(home, packed(found))


def test_the_last_file_is_compared_before_the_first_is_installed(home):
    found = members(GOOD)
    found[-1] = (found[-1][0], b"a whEEl")
    assert "wheels/hpc_container_toolkit-0.3.0-py3-none-any.whl: its content does not match" in refused(
        home, packed(found)
    )


@every_row("place", range(10))
def test_a_missing_file_is_refused(tmp_path, monkeypatch, place):
    home = places(tmp_path, monkeypatch)
    found = members(GOOD)
    del found[place]
    refused(home, packed(found))


def test_an_archive_in_another_order_is_refused(home):
    assert "first members are not" in refused(home, packed(members(GOOD)[::-1]))


def test_an_archive_cut_short_anywhere_is_refused(home):
    data = packed(members(GOOD))
    end = len(data.rstrip(b"\0"))
    (home / "cache").mkdir()
    for size in (*range(0, end, 700), *range(512, end, 1024 * 3), end - 1):
        (home / "cut.tar").write_bytes(data[:size])
        before = listing(home)
        error = unbundle(home / "cut.tar").exception
        assert isinstance(error, ToolkitError), (size, error)
        assert (error.code, listing(home)) == (2, before)


def test_a_size_beyond_the_file_is_refused(home):
    data = bytearray(packed(members(GOOD)))
    at = data.rindex(b"wheels/hpc_container_toolkit")
    data[at + 124 : at + 136] = b"00000777777\0"
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    assert "incomplete" in refused(home, bytes(data))


@every_row("data", [b"", b"not a tar", bytes(2000), b"\x1f\x8b" + bytes(600)])
def test_what_is_not_a_bundle_is_refused(tmp_path, monkeypatch, data):
    home = places(tmp_path, monkeypatch)
    assert "not a bundle" in refused(home, data)


# Bundles with a wrong index


def test_a_recipe_that_the_index_does_not_name_is_refused(home):
    files = contents("tf2.15-cpu", recipes=[])
    assert "bundle.json does not" in refused(home, packed(members(files)))


@every_row("stray", ["sif/a.sif", "images/a.tar", "recipes/other.toml", "sif/a.sif.sha256"])
def test_a_file_that_the_index_does_not_name_is_refused(tmp_path, monkeypatch, stray):
    home = places(tmp_path, monkeypatch)
    message = refused(home, packed(members({**GOOD, stray: b"x"})))
    assert f"SHA256SUMS names {stray}, but bundle.json does not" in message


def test_a_file_that_no_lock_names_is_refused(home):
    assert "which no lock in the bundle names" in refused(home, packed(members({**GOOD, STRAY: b"x"})))


def test_a_file_under_another_hash_is_refused(home):
    files = {**GOOD, f"files/{'0' * 64}/x": b"x"}
    assert "is not the file's SHA-256" in refused(home, packed(members(files)))


@every_row("path", ["recipes/mine.toml", "recipes/mine.lock.json"])
def test_a_recipe_without_its_lock_and_a_lock_without_its_recipe_are_refused(tmp_path, monkeypatch, path):
    home = places(tmp_path, monkeypatch)
    files = {name: content for name, content in GOOD.items() if name != path}
    assert f"bundle.json names {path}, but SHA256SUMS does not" in refused(home, packed(members(files)))


@every_row(
    "changed",
    [
        {"recipes": ["../mine"]},
        {"recipes": ["x/mine"]},
        {"recipes": ["Mine"]},
        {"recipes": ["m" * 300]},
        {"pythons": ["/bin/evil"]},
        {"machine": "$(x)"},
        {"sifs": ["/etc/passwd"]},
        {"images": [{"name": "debian:bookworm", "id": "sha256:" + "0" * 64, "path": "images/a.tar"}]},
        {"images": [{"name": "toolkit-base:a", "id": "x", "path": "images/a.tar"}]},
        {"images": [{"name": "toolkit-base:a", "id": "sha256:" + "0" * 64, "path": "../a.tar"}]},
    ],
    ids=str,
)
def test_an_index_with_values_that_it_cannot_have_is_refused(tmp_path, monkeypatch, changed):
    home = places(tmp_path, monkeypatch)
    assert "is not a valid value" in refused(home, packed(members(contents(**changed))))


@every_row(
    "damage",
    [
        lambda files: changed_lock(files, recipe_sha256="0" * 64),
        lambda files: changed_lock(files, schema="toolkit.lock/9"),
        lambda files: changed_lock(files, base={"name": "x"}),
        lambda files: {**files, "recipes/mine.lock.json": b"[" * 9999},
        lambda files: {**files, "recipes/mine.toml": b"\xff"},
        lambda files: {**files, "recipes/mine.toml": b"a=" + b"[" * 9999},
        lambda files: {**files, "recipes/mine.toml": b"schema = 1"},
    ],
)
def test_a_recipe_or_lock_that_cannot_be_used_is_refused(tmp_path, monkeypatch, damage):
    home = places(tmp_path, monkeypatch)
    refused(home, packed(members(damage(GOOD))))


# Recipes that already exist on this machine


def test_a_shipped_recipe_is_not_replaced_unasked(home):
    message = refused(home, packed(members(contents("tf2.15-cpu", "EVIL SHADOW"))))
    assert f"tf2.15-cpu (differs from {shipped_folder('recipes') / 'tf2.15-cpu.toml'})" in message
    done = unbundle(home / "evil.tar", "--replace")
    assert done.exit_code == 0
    assert "replaced: tf2.15-cpu" in done.output


def test_an_own_recipe_is_not_replaced_unasked(home):
    own = home / "config" / "toolkit" / "recipes"
    own.mkdir(parents=True)
    (own / "mine.toml").write_bytes(b"of my own")
    assert f"mine (differs from {own / 'mine.toml'})" in refused(home, packed(members(GOOD)))
    assert unbundle(home / "evil.tar", "--replace").exit_code == 0
    assert (own / "mine.toml").read_bytes() == GOOD["recipes/mine.toml"]


def test_an_own_lock_is_not_replaced_unasked(home):
    own = home / "config" / "toolkit" / "recipes"
    own.mkdir(parents=True)
    (own / "mine.lock.json").write_bytes(b"of my own")
    assert "mine (differs from" in refused(home, packed(members(GOOD)))
    assert [path.name for path in own.iterdir()] == ["mine.lock.json"]


@every_row("kind", ["link", "folder"])
def test_a_link_or_folder_in_the_place_of_a_recipe_is_not_replaced_unasked(tmp_path, monkeypatch, kind):
    home = places(tmp_path, monkeypatch)
    place = home / "config" / "toolkit" / "recipes" / "mine.toml"
    place.parent.mkdir(parents=True)
    if kind == "link":
        place.symlink_to(home / "outside" / "absent")
    else:
        place.mkdir()
    refused(home, packed(members(GOOD)))
    assert not (home / "outside" / "absent").exists()
