"""Test that no command starts an image that was changed after signing, or an image without a trusted
signature.
"""

import json
import shutil

import pytest

from tests.flip import flip
from tests.services.jobs import launched
from tests.services.program import toolkit
from tests.unit.image.signed import PUBLIC_KEY, gpg_home
from toolkit.image.files.sif.sifobjects import read_table

USER = "builder@example.org"
STARTS = {
    "launch": ("launch", "--image", "{image}", "--cluster", "{cluster}", "--", "true"),
    "notebook": ("notebook", "--image", "{image}", "--cluster", "{cluster}", "--dry-run"),
    "doctor": ("doctor", "{image}", "--cluster", "{cluster}", "--live"),
    "scale": (
        "scale",
        "mnist",
        "--ranks",
        "1",
        "--study",
        "{study}",
        "--image",
        "{image}",
        "--cluster",
        "{cluster}",
    ),
    "local": ("launch", "--local", "--image", "{image}", "--", "true"),
}


@pytest.fixture(scope="module")
def signed(training_sif, tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    image = folder / "image.sif"
    shutil.copy(training_sif, image)
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make(f"Builder <{USER}>")
        keys.public(folder / "public.asc", USER)
        toolkit("image", "sign", str(image), "--key", USER)
    return image


def words(name, image, cluster):
    return [
        word.format(image=image, study=image.parent / "study", cluster=cluster.name) for word in STARTS[name]
    ]


@pytest.mark.parametrize("name", STARTS)
def test_a_signed_image_that_was_changed_is_refused(name, signed, cluster, tmp_path):
    image = tmp_path / "image.sif"
    shutil.copy(signed, image)
    with image.open("rb") as file:
        entry = read_table(file, image).used[0]
    flip(image, entry.offset)
    done = toolkit(*words(name, image, cluster), ok=False)
    assert done.returncode == 1
    assert "its content has changed since it was signed" in done.stderr


def test_a_signed_image_is_launched_and_the_record_says_who_signed(signed, cluster):
    key = ("--verify-key", str(signed.with_name("public.asc")))
    done = launched(
        ["--image", str(signed), "--cluster", cluster.name, "--no-preflight", "--json"],
        *key,
        "--",
        "sh",
    )
    checked = json.loads(done.stdout)["image_check"]
    assert checked["signature"] == "good"
    assert len(checked["signers"]) == 1


@pytest.mark.parametrize("image", ["unsigned", "other"])
def test_an_image_that_no_trusted_key_signed_is_refused(image, signed, training_sif, cluster, tmp_path):
    key = tmp_path / "trusted.asc"
    key.write_text(PUBLIC_KEY)
    sif = signed if image == "other" else training_sif
    start = ["--image", str(sif), "--cluster", cluster.name, "--verify-key", str(key)]
    done = launched(start, "--", "true", ok=False)
    assert done.returncode == 1
    assert "sign" in done.stderr
