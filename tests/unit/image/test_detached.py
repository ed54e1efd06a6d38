"""Test signature files of bundles and locks: who signed, and which signatures toolkit refuses."""

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tests.unit.image.bundles import contents, recipe, write_bundle
from tests.unit.image.signed import Keys, gpg_home
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.data import shipped_folder
from toolkit.errors import BadInput, Missing
from toolkit.image.locks.lock import load_lock, save_lock
from toolkit.image.transfer.bundle_reader import stage
from toolkit.image.trust.detached import sign_file, signature_file, signature_of
from toolkit.model.progress import Silent

ADA, EVE = "Ada <ada@example.org>", "Eve <eve@example.org>"


@pytest.fixture(scope="module")
def home() -> Iterator[Keys]:
    with gpg_home() as keys:
        keys.make(ADA)
        keys.make(EVE)
        keys.make("Old <old@example.org>", expires="1d", at=1_500_000_000)
        yield keys


@pytest.fixture
def keys(home: Keys, monkeypatch, tmp_path) -> Keys:
    monkeypatch.setenv("GNUPGHOME", str(home.home))
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return home


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "toolkit.tar", contents())


@pytest.fixture
def lock(tmp_path):
    for ending in ("toml", "lock.json"):
        shutil.copy(shipped_folder("recipes") / f"mpi-only.{ending}", tmp_path / f"mine.{ending}")
    return tmp_path / "mine.lock.json"


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words], obj={"verbose": False, "quiet": True})


def failed(*words):
    done = run(*words)
    assert done.exception is not None, done.output
    return done.exception


def installed(tmp_path):
    return (tmp_path / "config").exists() or (tmp_path / "cache" / "files").exists()


def test_a_signed_bundle_says_who_signed_it(keys, bundle):
    made = json.loads(run("sign", bundle, "--key", "ada@example.org", "--json").stdout)
    assert (made["schema"], made["user"], made["path"]) == ("toolkit.signed/1", ADA, str(bundle))
    done = run("unbundle", bundle)
    assert done.exit_code == 0, repr(done.exception)
    assert f"{bundle}: signed by {ADA}, key {keys.fingerprint(ADA)}" in done.output
    assert json.loads(run("unbundle", bundle, "--json").stdout)["signature"]["state"] == "good"


def test_an_unsigned_bundle_is_named_so(keys, bundle):
    assert f"{bundle}: not signed" in run("unbundle", bundle).output


def test_gpg_and_sha256sum_check_it_without_toolkit(keys, bundle):
    sign_file(bundle, ADA)
    text = keys.gpg("--decrypt", str(signature_file(bundle)))
    subprocess.run(["sha256sum", "--strict", "--check"], input=text, cwd=bundle.parent, check=True)


def test_a_bundle_that_was_changed_after_signing_is_refused_before_anything_is_installed(
    keys, bundle, tmp_path
):
    sign_file(bundle, ADA)
    write_bundle(bundle, contents(title="Another recipe"))
    error = failed("unbundle", bundle)
    assert "the file has changed since it was signed" in error.message
    assert error.code == 1
    assert not installed(tmp_path)


@every_row("where", ["end", "padding"])
def test_every_byte_of_the_archive_is_signed(keys, bundle, where):
    sign_file(bundle, ADA)
    data = bytearray(bundle.read_bytes())
    at = len(data) - 1 if where == "end" else data.index(b"#!/bin/sh\n") + 400
    assert data[at] == 0
    data[at] = 1
    bundle.write_bytes(data)
    assert "has changed since it was signed" in failed("unbundle", bundle).message


def test_the_hash_of_the_archive_is_that_of_the_file(bundle, tmp_path):
    (tmp_path / "work").mkdir()
    staged = stage(bundle, tmp_path / "work", Silent())
    listed = subprocess.run(["sha256sum", str(bundle)], capture_output=True, text=True, check=True).stdout
    assert staged.sha256 == listed.split()[0]


def test_a_demanded_key_refuses_all_others(keys, bundle, tmp_path):
    ring = keys.public(tmp_path / "ada.asc", ADA)
    assert "the file has no signature" in failed("unbundle", bundle, "--verify-key", ring).message
    sign_file(bundle, EVE)
    assert "not among your trusted keys" in failed("unbundle", bundle, "--verify-key", ring).message
    assert not installed(tmp_path)
    sign_file(bundle, ADA)
    assert run("unbundle", bundle, "--verify-key", ring).exit_code == 0


def test_a_demanded_key_needs_the_archive(keys, tmp_path):
    error = failed("unbundle", tmp_path, "--verify-key", keys.public(tmp_path / "ada.asc", ADA))
    assert "is a folder; only the archive of a bundle has a signature" in error.message


@every_row("verb", ["unbundle", "build", "render"])
@every_row("value", ["", "  ", "absent.asc"])
def test_an_empty_or_absent_key_file_is_an_error(keys, bundle, lock, verb, value):
    target = bundle if verb == "unbundle" else lock.with_name("mine.toml")
    error = failed(verb, target, "--verify-key", value)
    assert isinstance(error, BadInput)
    assert error.message.startswith("--verify-key")


def test_a_key_that_is_not_here_is_named(keys, bundle, monkeypatch):
    sign_file(bundle, ADA)
    with gpg_home() as other:
        monkeypatch.setenv("GNUPGHOME", str(other.home))
        assert f"signed with the key {keys.fingerprint(ADA)}, which is not in your keyring" in (
            run("unbundle", bundle).output
        )
        write_bundle(bundle, contents(title="Another recipe"))
        assert "has changed since it was signed" in failed("unbundle", bundle, "--replace").message


@every_row("text", [b"", b"x", b"-----BEGIN PGP SIGNED MESSAGE-----\n\nx\n", bytes(2 << 20)], ids=len)
def test_a_file_that_is_not_a_signature_is_refused(keys, bundle, tmp_path, text):
    signature_file(bundle).write_bytes(text)
    assert failed("unbundle", bundle).code in {1, 2}
    assert not installed(tmp_path)


def test_a_dangling_link_is_not_taken_for_no_signature(keys, bundle):
    signature_file(bundle).symlink_to("absent")
    assert isinstance(failed("unbundle", bundle), BadInput)


def test_a_signature_of_another_text_is_refused(keys, bundle):
    signature_file(bundle).write_bytes(keys.gpg("--local-user", ADA, "--clearsign", stdin=b"I agree\n"))
    assert "the signed text is not a SHA-256" in failed("unbundle", bundle).message


def test_a_signature_that_was_edited_is_refused(keys, bundle):
    sign_file(bundle, ADA)
    text = signature_file(bundle).read_text()
    (line,) = (line for line in text.splitlines() if line.endswith("  toolkit.tar"))
    signature_file(bundle).write_text(text.replace(line, f"{'0' * 64}  toolkit.tar"))
    assert "was changed after signing" in failed("unbundle", bundle).message


def test_the_signature_of_an_expired_key_is_refused(keys, bundle):
    text = b"0" * 64 + b"  toolkit.tar\n"
    made = keys.gpg("--local-user", "old@example.org", "--clearsign", stdin=text, at=1_500_000_100)
    signature_file(bundle).write_bytes(made)
    assert "whose key has expired" in failed("unbundle", bundle).message


def test_without_gpg_a_signature_is_not_called_good(keys, bundle, monkeypatch, tmp_path):
    sign_file(bundle, ADA)
    ring = keys.public(tmp_path / "ada.asc", ADA)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = "not checked: the file has a signature, but gpg is not installed"
    assert signature_of(bundle, None).description == said
    with pytest.raises(Missing):
        signature_of(bundle, ring)


def test_what_is_beside_it_and_is_not_a_signature_stays(keys, bundle):
    signature_file(bundle).write_text("a letter")
    with pytest.raises(BadInput, match=r"toolkit did not write it"):
        sign_file(bundle, ADA)
    assert signature_file(bundle).read_text() == "a letter"


def test_a_bundle_keeps_its_signature_under_another_name(keys, bundle, tmp_path):
    sign_file(bundle, ADA)
    for path in (bundle, signature_file(bundle)):
        shutil.copy(path, tmp_path / path.name.replace("toolkit", "renamed"))
    assert "signed by Ada" in run("unbundle", tmp_path / "renamed.tar").output


def test_only_a_sif_a_bundle_or_a_lock_is_signed(keys, tmp_path, lock, bundle):
    (tmp_path / "x.lock.json").write_text("{}")
    assert "not a lock" in failed("sign", tmp_path / "x.lock.json", "--key", ADA).message
    (tmp_path / "text").write_text("text")
    assert failed("sign", tmp_path / "text", "--key", ADA).code == 2
    assert failed("sign", tmp_path / "absent", "--key", ADA).code == 2
    for path in (lock, bundle):
        error = failed("sign", path, "--key", ADA, "--provenance", "full")
        assert "is not a SIF file" in error.message
        assert isinstance(failed("sign", path, "--key", ""), BadInput)


def test_a_lock_says_who_signed_it(keys, lock):
    toml = lock.with_name("mine.toml")
    assert f"{lock}: not signed" in run("render", toml).stderr
    assert run("sign", lock, "--key", ADA).exit_code == 0
    done = run("render", toml)
    assert done.exit_code == 0, repr(done.exception)
    assert f"{lock}: signed by {ADA}, key {keys.fingerprint(ADA)}" in done.stderr
    assert "signed by" not in done.stdout
    assert json.loads(run("render", toml, "--json").stdout)["lock_signature"]["user"] == ADA


def test_a_lock_that_was_changed_after_signing_is_refused_before_the_engine_is_asked(keys, lock):
    sign_file(lock, ADA)
    lock.write_bytes(lock.read_bytes() + b"\n")
    for verb in ("render", "build"):
        assert "the file has changed since it was signed" in failed(verb, lock.with_name("mine.toml")).message


def test_a_demanded_key_is_demanded_of_every_lock(keys, lock, tmp_path):
    ring, toml = keys.public(tmp_path / "ada.asc", ADA), lock.with_name("mine.toml")
    sign_file(lock, EVE)
    assert "not among your trusted keys" in failed("render", toml, "--verify-key", ring).message
    sign_file(lock, ADA)
    assert run("render", toml, "--verify-key", ring).exit_code == 0
    assert "the file has no signature" in failed("render", "mpi-only", "--verify-key", ring).message
    (tmp_path / "new.toml").write_bytes(recipe())
    assert "has no lock" in failed("build", tmp_path / "new.toml", "--verify-key", ring).message


def test_a_lock_that_came_with_toolkit_is_not_spoken_of(keys):
    done = run("render", "mpi-only")
    assert done.exit_code == 0
    assert "signed" not in done.stderr
    assert json.loads(run("render", "mpi-only", "--json").stdout)["lock_signature"] is None


def test_an_own_lock_of_a_shipped_recipe_is_spoken_of(keys, tmp_path):
    own = tmp_path / "config" / "toolkit" / "recipes"
    own.mkdir(parents=True)
    shutil.copy(shipped_folder("recipes") / "mpi-only.toml", own)
    shutil.copy(shipped_folder("recipes") / "mpi-only.lock.json", own)
    assert f"{own / 'mpi-only.lock.json'}: not signed" in run("render", "mpi-only").stderr


def test_a_new_lock_does_not_keep_the_signature_of_the_old_one(keys, lock):
    sign_file(lock, ADA)
    found = load_lock(str(lock.with_name("mine.toml")))
    assert found is not None
    save_lock(found, lock)
    assert not signature_file(lock).exists()
