"""No command starts an image that was changed after it was signed, or that nobody trusted signed."""

import shutil

import pytest

from tests.services.program import toolkit
from tests.unit.cli.test_signed import flip
from tests.unit.image.signed import PUBLIC_KEY, gpg_home

USER = "builder@example.org"
STARTS = {
    "launch": ("launch", "--image", "{image}", "--cluster", "{cluster}", "--", "true"),
    "notebook": ("notebook", "--image", "{image}", "--cluster", "{cluster}", "--dry-run"),
    "doctor": ("doctor", "{image}", "--cluster", "{cluster}", "--live"),
    "scale": ("scale", "mnist", "--ranks", "1", "--image", "{image}", "--cluster", "{cluster}"),
    "local": ("launch", "--local", "--image", "{image}", "--", "true"),
}


@pytest.fixture(scope="module")
def signed(box, tmp_path_factory):
    """A signed SIF, and the public key."""
    folder = tmp_path_factory.mktemp("signed")
    image = folder / "image.sif"
    shutil.copy(box[box.index("--image") + 1], image)
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make(f"Builder <{USER}>")
        keys.public(folder / "public.asc", USER)
        toolkit("image", "sign", str(image), "--key", USER)
    return image


def words(name, image, cluster):
    return [word.format(image=image, cluster=cluster.name) for word in STARTS[name]]


@pytest.mark.parametrize("name", STARTS)
def test_a_signed_image_that_was_changed_is_refused(name, signed, cluster, tmp_path):
    image = tmp_path / "image.sif"
    shutil.copy(signed, image)
    flip(image, 0)
    done = toolkit(*words(name, image, cluster), ok=False)
    assert done.returncode == 1
    assert "its content is not what was signed" in done.stderr


def test_a_signed_image_is_launched_and_the_record_says_who_signed(signed, cluster):
    start = words("launch", signed, cluster)
    options = ("--verify-key", str(signed.with_name("public.asc")), "--no-preflight", "--force", "--json")
    done = toolkit(*start[:-2], *options, *start[-2:])
    assert USER in done.stdout


@pytest.mark.parametrize("image", ["unsigned", "other"])
def test_an_image_that_no_trusted_key_signed_is_refused(image, signed, cluster, box, tmp_path):
    key = tmp_path / "trusted.asc"
    key.write_text(PUBLIC_KEY)
    sif = signed if image == "other" else box[box.index("--image") + 1]
    start = words("launch", sif, cluster)
    done = toolkit(*start[:-2], "--verify-key", str(key), *start[-2:], ok=False)
    assert done.returncode == 1
    assert "sign" in done.stderr
