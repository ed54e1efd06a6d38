"""Test that toolkit verifies Apptainer's signatures, and Apptainer verifies toolkit's signatures."""

import json
import os
import shutil

import msgspec
import pytest

from tests.flip import flip
from tests.services.program import toolkit
from tests.services.ready import RECIPE
from tests.unit.image import test_audit
from tests.unit.image.signed import gpg_home
from toolkit.errors import CheckFailed
from toolkit.image.builds.provenance import PROVENANCE_PATH, provenance
from toolkit.image.builds.sbom import SBOM_PATH, sbom
from toolkit.image.files.sif.sifobjects import PARTITION, read_table
from toolkit.image.locks.lock import lock_path
from toolkit.image.trust import attachments
from toolkit.image.trust.verify import LOCK_PATH
from toolkit.model.lock import encode_lock
from toolkit.model.progress import Silent
from toolkit.run.docker.builder import BUILDER, ensure_builder
from toolkit.run.docker.containers import Box, run_once

USER = "Builder <builder@example.org>"
MAKE = """
set -e
cd /w
for file in /bin/true /bin/sh $(ldd /bin/true /bin/sh | grep -o '/lib[^ :]*'); do
    mkdir -p "tree$(dirname "$file")" && cp -L "$file" "tree$file"
done
apptainer build plain.sif tree
cp plain.sif theirs.sif
apptainer key newpair --name Theirs --email theirs@example.org --comment '' --password '' --push=false
apptainer sign theirs.sif
cp "$HOME/.apptainer/keys/pgp-public" theirs.keys
apptainer build image.sif image
rm -rf tree
chown "$OWNER" *
"""
CHECK = 'apptainer key import /w/public.asc && apptainer verify --local "/w/$1"'


def image(root):
    lock = test_audit.lock()
    base = tuple(chosen for chosen in lock.solution.chosen if chosen.component == "base")
    lock = msgspec.structs.replace(lock, solution=msgspec.structs.replace(lock.solution, chosen=base))
    for path, content in (
        (LOCK_PATH, encode_lock(lock)),
        (SBOM_PATH, sbom(lock)),
        (PROVENANCE_PATH, provenance(lock)),
        ("/etc/os-release", b"ID=debian\n"),
    ):
        test_audit.put(root, path.lstrip("/"), content)
    return test_audit.built(root)


def apptainer(engine, folder, script, *words):
    env = {"HOME": "/tmp", "OWNER": f"{os.getuid()}:{os.getgid()}"}
    box = Box(BUILDER, binds={str(folder): "/w"}, env=env, nested=True, timeout=120)
    return run_once(engine, box, ("sh", "-c", script, "sh", *words))


@pytest.fixture(scope="module")
def files(engine, tmp_path_factory):
    ensure_builder(engine, Silent())
    folder = tmp_path_factory.mktemp("signatures")
    image(folder / "image")
    made = apptainer(engine, folder, MAKE)
    assert made.ok, made.lines
    return folder


@pytest.fixture(scope="module")
def ours(files):
    """Return a SIF file that toolkit signed."""
    signed = files / "ours.sif"
    shutil.copy(files / "plain.sif", signed)
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make(USER)
        keys.public(files / "public.asc", USER)
        toolkit("image", "sign", str(signed), "--key", "builder@example.org")
    return signed


def damaged(sif, name):
    copy = sif.with_name(name)
    shutil.copy(sif, copy)
    with copy.open("rb") as file:
        root = next(e for e in read_table(file, copy).used if e.kind == PARTITION)
    flip(copy, root.offset + root.size // 2)
    return copy


def test_apptainer_accepts_what_the_toolkit_signed_and_refuses_a_flipped_byte(engine, files, ours):
    done = apptainer(engine, files, CHECK, ours.name)
    assert done.ok, done.lines
    assert any("Verified signature" in line for line in done.lines)
    refused = apptainer(engine, files, CHECK, damaged(ours, "ours-damaged.sif").name)
    assert not refused.ok
    assert any("integrity compromised" in line for line in refused.lines)


def test_the_toolkit_accepts_what_apptainer_signed_and_refuses_a_flipped_byte(files):
    theirs, keys = files / "theirs.sif", str(files / "theirs.keys")
    found = json.loads(toolkit("image", "verify", str(theirs), "--keyring", keys, "--json").stdout)
    assert found["checks"][1]["told"].startswith("signed by Theirs <theirs@example.org>")
    bad = damaged(theirs, "theirs-damaged.sif")
    done = toolkit("image", "verify", str(bad), "--keyring", keys, ok=False)
    assert done.returncode == 1
    assert "its content has changed since it was signed" in done.stderr


def test_apptainer_still_starts_what_the_toolkit_signed(engine, files, ours):
    script = 'apptainer sif list "/w/$1" && apptainer exec -u --no-home "/w/$1" /bin/true'
    done = apptainer(engine, files, script, ours.name)
    assert done.ok, done.lines
    assert any("Signature (SHA-256)" in line for line in done.lines)


def test_signatures_of_both_stand_beside_each_other(files, ours):
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make("Second <second@example.org>")
        both = files / "both.sif"
        shutil.copy(files / "theirs.sif", both)
        toolkit("image", "sign", str(both), "--key", "second@example.org")
        found = json.loads(toolkit("image", "verify", str(both), "--json").stdout)
        assert found["signers"] == [keys.fingerprint("second@example.org")]
    trusted = toolkit("image", "verify", str(both), "--keyring", str(files / "theirs.keys"), "--json").stdout
    assert len(json.loads(trusted)["signers"]) == 1


@pytest.fixture
def whole(files, tmp_path):
    sif = tmp_path / "image.sif"
    shutil.copy(files / "image.sif", sif)
    assert attachments.attach(sif) == ("sbom.cdx.json", "provenance.intoto.json")
    return sif


def test_an_image_from_a_lock_is_verified_inside_and_out(files, whole):
    kept = (files / "image" / SBOM_PATH.lstrip("/")).read_text()
    assert toolkit("image", "sbom", str(whole)).stdout == kept
    lock = str(files / "image" / LOCK_PATH.lstrip("/"))
    done = toolkit("image", "verify", str(whole), "--unsigned", "--lock", lock, "--json")
    found = {check["name"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    assert found == {
        "digest": "not-checked",
        "signature": "not-checked",
        "lock": "ok",
        "files": "ok",
        "packages": "ok",
        "wheels": "ok",
        "versions": "ok",
    }


def test_papers_are_attached_once_and_the_same_each_time(engine, files, whole, tmp_path):
    again = tmp_path / "again.sif"
    shutil.copy(files / "image.sif", again)
    attachments.attach(again)
    assert again.read_bytes() == whole.read_bytes()
    with pytest.raises(CheckFailed, match="already has an SBOM or a signature"):
        attachments.attach(again)
    listed = apptainer(engine, tmp_path, 'apptainer sif list "/w/$1"', again.name)
    assert any("SBOM (cyclonedx-json)" in line for line in listed.lines), listed.lines


def test_what_differs_by_machine_is_beside_the_sif_and_under_the_signature_if_asked(whole, tmp_path):
    beside = attachments.write_full_provenance(whole, {"docker": "28"}, 1.0, 2.0)
    assert beside is not None
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make(USER)
        toolkit("image", "sign", str(whole), "--key", "builder@example.org", "--provenance", "full")
        toolkit("image", "verify", str(whole))
    with whole.open("rb") as file:
        names = [entry.name.rstrip(b"\0").decode() for entry in read_table(file, whole).used]
    assert names[-2:] == ["provenance-full.intoto.json", ""]


def test_what_the_toolkit_builds_is_what_its_lock_says_file_by_file(training_sif):
    lock = str(lock_path(RECIPE))
    done = toolkit("image", "verify", str(training_sif), "--unsigned", "--lock", lock, "--json")
    checks = {check["name"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    assert checks.pop("signature") == "not-checked"
    assert set(checks.values()) == {"ok"}
    listed = toolkit("image", "sbom", str(training_sif)).stdout
    assert "HOROVOD_WITH_MPI=1" in listed
