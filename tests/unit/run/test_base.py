from types import SimpleNamespace

import pytest

from toolkit.run.base import _describe

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
