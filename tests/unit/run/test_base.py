from types import SimpleNamespace

import docker
import pytest
import requests

from tests.unit.heard import Heard
from toolkit.errors import CheckFailed
from toolkit.run import base as bases
from toolkit.run.base import _describe, ensure_base
from toolkit.run.command import Completed

ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64


@pytest.mark.parametrize(
    "other", [[], None, [f"127.0.0.1:5000/mine/debian@{DIGEST}"], [f"debian-like@{DIGEST}"]]
)
def test_a_base_that_somebody_pushed_to_a_registry_of_theirs_is_not_published(other):
    image = SimpleNamespace(id=ID, attrs={"RepoDigests": other})
    base = _describe(image, "toolkit-base:bookworm", "debian:bookworm-slim")
    assert (base.published, base.digest, base.reference) == (False, ID, "toolkit-base:bookworm")


def test_a_published_base_is_known_by_its_own_name():
    image = SimpleNamespace(id=ID, attrs={"RepoDigests": [f"h/mine@{ID}", f"debian@{DIGEST}"]})
    base = _describe(image, "toolkit-base:bookworm", "debian:bookworm-slim")
    assert (base.published, base.reference) == (True, f"debian@{DIGEST}")


@pytest.mark.parametrize(
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
    assert any(f"does not give debian:bookworm-slim: {words}" in step for step in heard.steps)


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
