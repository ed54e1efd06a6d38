from types import SimpleNamespace

import docker
import pytest
import requests

from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.run.command import Completed
from toolkit.run.docker import base as bases
from toolkit.run.docker.base import _describe, ensure_base

ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64


@every_row("other", [[], None, [f"127.0.0.1:5000/mine/debian@{DIGEST}"], [f"debian-like@{DIGEST}"]])
def test_a_base_that_somebody_pushed_to_a_registry_of_theirs_is_not_published(other):
    image = SimpleNamespace(id=ID, attrs={"RepoDigests": other})
    base = _describe(image, "toolkit-base:bookworm", "debian:bookworm-slim")
    assert (base.published, base.digest, base.reference) == (False, ID, "toolkit-base:bookworm")


def test_a_published_base_is_known_by_its_own_name():
    image = SimpleNamespace(id=ID, attrs={"RepoDigests": [f"h/mine@{ID}", f"debian@{DIGEST}"]})
    base = _describe(image, "toolkit-base:bookworm", "debian:bookworm-slim")
    assert (base.published, base.reference) == (True, f"debian@{DIGEST}")


@every_row(
    ("error", "words"),
    [
        (
            docker.errors.APIError("x", None, "toomanyrequests: You have\nreached your limit"),
            "toomanyrequests",
        ),
        (requests.exceptions.ReadTimeout("Read timed out."), "no answer in time"),
    ],
)
def test_what_a_registry_says_when_it_gives_no_base_is_told(monkeypatch, error, words):
    def refuse(_):
        raise error

    asking = SimpleNamespace(images=SimpleNamespace(get_registry_data=refuse), close=lambda: None)
    made = SimpleNamespace(id=ID, attrs={})
    monkeypatch.setattr(bases, "connect", lambda timeout: asking)
    monkeypatch.setattr(bases, "find_image", lambda *_: None)
    monkeypatch.setattr(bases, "_bootstrap", lambda *_: made)
    heard = Heard()
    ensure_base(None, "bookworm", "debian:bookworm-slim", heard)
    assert any(f"does not provide debian:bookworm-slim: {words}" in step for step in heard.steps)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Return the bootstrap commands, recorded on a machine whose apt trusts Debian's keys."""
    commands = []

    class Noting:
        def stream(self, command, on_line):
            commands.append(command)
            return Completed(command, 0, b"", b"")

    monkeypatch.setattr(bases, "LocalRunner", Noting)
    monkeypatch.setattr(bases, "_TRUSTED", tmp_path / "trusted")
    monkeypatch.setattr(bases, "_KEYRING", tmp_path / "keyring.gpg")
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted" / "debian-archive-bookworm-stable.asc").touch()
    (tmp_path / "keyring.gpg").touch()
    return commands


@every_row(
    ("mirror", "last", "stdin"),
    [
        (None, (), None),
        ("", (), None),
        ("http://mirror.example/debian", ("http://mirror.example/debian",), None),
        ("https://ada:s3cret@h/debian", ("-",), b"deb https://ada:s3cret@h/debian bookworm main\n"),
        ("https://token@h/debian ", ("-",), b"deb https://token@h/debian bookworm main\n"),
    ],
)
def test_a_login_in_the_address_of_a_mirror_is_on_no_command_line(
    monkeypatch, tmp_path, asked, mirror, last, stdin
):
    monkeypatch.delenv("TOOLKIT_DEBIAN_MIRROR", raising=False)
    if mirror is not None:
        monkeypatch.setenv("TOOLKIT_DEBIAN_MIRROR", mirror)
    tar = tmp_path / "base.tar"
    bases._mmdebstrap("bookworm", tar, Heard())
    (command,) = asked
    assert command.words[command.words.index("bookworm") :] == ("bookworm", str(tar), *last)
    assert command.stdin == stdin
    assert "s3cret" not in " ".join(command.words)
    assert "token" not in " ".join(command.words)
    assert not command.env


@every_row("keyring", [True, False])
def test_where_apt_does_not_trust_debians_keys_the_line_names_them(monkeypatch, tmp_path, asked, keyring):
    monkeypatch.setenv("TOOLKIT_DEBIAN_MIRROR", "https://ada:s3cret@h/debian")
    (tmp_path / "trusted" / "debian-archive-bookworm-stable.asc").unlink()
    if not keyring:
        (tmp_path / "keyring.gpg").unlink()
    bases._mmdebstrap("bookworm", tmp_path / "base.tar", Heard())
    signed = f' [signed-by="{tmp_path}/keyring.gpg"]' if keyring else ""
    assert asked[0].stdin.decode() == f"deb{signed} https://ada:s3cret@h/debian bookworm main\n"


def test_the_password_of_a_mirror_is_not_told_when_bootstrapping_fails(monkeypatch, tmp_path):
    said = "E: cannot fetch https://ada:s3cret@mirror.example/debian"

    class Failing:
        def stream(self, command, on_line):
            on_line(said)
            return Completed(command, 1, b"", said.encode())

    monkeypatch.setattr(bases, "LocalRunner", Failing)
    heard = Heard()
    with pytest.raises(CheckFailed) as caught:
        bases._mmdebstrap("bookworm", tmp_path / "base.tar", heard)
    assert heard.details == list(caught.value.detail) == ["E: cannot fetch https://mirror.example/debian"]


def test_a_release_that_changes_daily_is_taken_from_a_mirror_that_is_behind(tmp_path, asked):
    for release in ("forky", "bookworm"):
        bases._mmdebstrap(release, tmp_path / "base.tar", Heard())
    undated = [any("Check-Valid-Until" in word for word in command.words) for command in asked]
    assert undated == [True, False]


def test_an_index_past_its_date_is_named(monkeypatch, tmp_path):
    said = (
        "E: Release file for http://mirror.example/debian/dists/trixie-updates/InRelease is expired "
        "(invalid since 19d 21h 3min 57s). Updates for this repository will not be applied."
    )

    class Failing:
        def stream(self, command, on_line):
            return Completed(command, 25, b"", said.encode())

    monkeypatch.setattr(bases, "LocalRunner", Failing)
    with pytest.raises(CheckFailed) as caught:
        bases._mmdebstrap("trixie", tmp_path / "base.tar", Heard())
    assert "out of date" in caught.value.fix
    assert "trixie-updates/InRelease is expired (invalid since 19d 21h 3min 57s)" in caught.value.fix
    assert "TOOLKIT_DEBIAN_MIRROR=URL" in caught.value.fix
