"""Signatures that Apptainer made and that the toolkit made, each checked by the other."""

import json
import os
import shutil

import pytest

from tests.integration.program import toolkit
from tests.unit.image.signed import gpg_home
from toolkit.image.sifobjects import PARTITION, read_table
from toolkit.model.progress import Silent
from toolkit.run.builder import BUILDER, ensure_builder
from toolkit.run.containers import Box, run_once

pytestmark = pytest.mark.integration

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
rm -rf tree
chown "$OWNER" *
"""
CHECK = 'apptainer key import /w/public.asc && apptainer verify --local "/w/$1"'


def apptainer(engine, folder, script, *words):
    env = {"HOME": "/tmp", "OWNER": f"{os.getuid()}:{os.getgid()}"}
    box = Box(BUILDER, binds={str(folder): "/w"}, env=env, nested=True, timeout=120)
    return run_once(engine, box, ("sh", "-c", script, "sh", *words))


@pytest.fixture(scope="module")
def files(engine, tmp_path_factory):
    """A SIF that Apptainer made, a copy that it signed, and the keys that it has."""
    ensure_builder(engine, Silent())
    folder = tmp_path_factory.mktemp("signatures")
    made = apptainer(engine, folder, MAKE)
    assert made.ok, made.lines
    return folder


@pytest.fixture(scope="module")
def ours(files):
    """The same SIF, signed by the toolkit."""
    signed = files / "ours.sif"
    shutil.copy(files / "plain.sif", signed)
    with gpg_home() as keys, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(keys.home))
        keys.make(USER)
        keys.public(files / "public.asc", USER)
        toolkit("image", "sign", str(signed), "--key", "builder@example.org")
    return signed


def damaged(sif, name):
    """Copy a SIF and flip a byte in its file system."""
    copy = sif.with_name(name)
    shutil.copy(sif, copy)
    with copy.open("r+b") as file:
        root = next(e for e in read_table(file, copy).used if e.kind == PARTITION)
        file.seek(root.offset + root.size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
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
    assert "its content is not what was signed" in done.stderr


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
