"""Test ``toolkit image sign``, ``verify`` and ``sbom``, and how ``toolkit launch`` treats signatures."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.flip import flip as flip_bit
from tests.unit.cli.test_launch import Told, prepared
from tests.unit.image import locks
from tests.unit.image.sifs import DATA
from tests.unit.image.signed import OBJECTS, Keys, gpg_home, write_sif
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.builds.sbom import sbom
from toolkit.image.files.sif.sifobjects import CYCLONEDX_JSON, PARTITION, SBOM, Object, read_table

USER = "builder@example.org"
ROOT = Object(PARTITION, (DATA / "tiny.gzip").read_bytes(), "rootfs.squashfs", extra=OBJECTS[-1].extra)
LISTED = sbom(locks.lock())


@pytest.fixture(scope="module")
def home() -> Iterator[Keys]:
    with gpg_home() as keys:
        keys.make(USER)
        keys.make("other@example.org")
        yield keys


@pytest.fixture
def keys(home: Keys, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("GNUPGHOME", str(home.home))
    return home


@pytest.fixture
def sif(tmp_path: Path) -> Path:
    return write_sif(
        tmp_path / "image.sif", Object(SBOM, LISTED, "sbom.cdx.json", extra=CYCLONEDX_JSON), ROOT
    )


@pytest.fixture
def signed(keys: Keys, sif: Path) -> Path:
    assert run("sign", str(sif), "--key", USER).exit_code == 0
    return sif


def run(*words: str):
    return CliRunner().invoke(command, words, obj={"verbose": False, "quiet": True})


def flip(sif: Path, number: int) -> None:
    with sif.open("rb") as file:
        entry = read_table(file, sif).used[number]
    flip_bit(sif, entry.offset + entry.size // 2)
    sif.with_name("image.sif.sha256").unlink()


def test_what_was_signed_verifies_and_says_by_whom(keys: Keys, signed: Path):
    done = run("verify", str(signed))
    assert done.exit_code == 0, done.exception
    assert f"ok      signature  signed by {USER} ({keys.fingerprint(USER)})" in done.stdout
    found = json.loads(run("verify", str(signed), "--json").stdout)
    assert found["schema"] == "toolkit.verified/1"
    assert found["signers"] == [keys.fingerprint(USER)]
    assert {c["name"]: c["outcome"] for c in found["checks"]} == {
        "digest": "ok",
        "signature": "ok",
        "lock": "not-checked",
        "files": "not-checked",
        "packages": "not-checked",
        "wheels": "not-checked",
        "versions": "not-checked",
    }


@every_row("number", range(3))
def test_a_flipped_byte_anywhere_ends_in_1(signed: Path, number: int):
    flip(signed, number)
    done = run("verify", str(signed))
    assert isinstance(done.exception, CheckFailed)
    assert "FAILED" in done.stdout


def test_a_flipped_byte_without_any_signature_is_told_by_the_checksum(signed: Path, sif: Path):
    noted = sif.with_name("image.sif.sha256")
    noted.write_text(noted.read_text().replace(noted.read_text()[:4], "0000"))
    done = run("verify", str(sif), "--json")
    assert isinstance(done.exception, CheckFailed)
    assert json.loads(done.stdout)["checks"][0]["outcome"] == "failed"


def test_a_key_that_is_not_here_ends_in_3_and_says_which(keys: Keys, signed: Path, tmp_path: Path):
    others = keys.public(tmp_path / "others.asc", "other@example.org")
    done = run("verify", str(signed), "--keyring", str(others))
    assert isinstance(done.exception, Missing)
    assert keys.fingerprint(USER) in done.exception.message
    assert run("verify", str(signed), "--keyring", str(others), "--unsigned").exit_code == 0
    flip(signed, 1)
    for words in ((), ("--unsigned",)):
        done = run("verify", str(signed), "--keyring", str(others), *words)
        assert isinstance(done.exception, CheckFailed)


def test_no_signature_ends_in_1_unless_that_is_accepted(sif: Path):
    done = run("verify", str(sif))
    assert isinstance(done.exception, CheckFailed)
    assert "the SIF has no signature" in done.exception.message
    assert run("verify", str(sif), "--unsigned").exit_code == 0


def test_a_lock_that_was_asked_for_and_is_not_there_ends_in_1(signed: Path, tmp_path: Path):
    from toolkit.model.lock import encode_lock

    file = tmp_path / "small.lock.json"
    file.write_bytes(encode_lock(locks.lock()))
    done = run("verify", str(signed), "--lock", str(file))
    assert "the image has no /opt/toolkit/lock.json; also failed: packages" in done.exception.message
    file.write_text("{}")
    assert isinstance(run("verify", str(signed), "--lock", str(file)).exception, BadInput)
    assert isinstance(run("verify", str(signed), "--lock", "/nope").exception, BadInput)


def test_one_signature_that_is_trusted_is_enough_beside_one_that_is_not(keys: Keys, signed: Path, tmp_path):
    assert run("sign", str(signed), "--key", "other@example.org").exit_code == 0
    mine = keys.public(tmp_path / "mine.asc", USER)
    found = json.loads(run("verify", str(signed), "--keyring", str(mine), "--json").stdout)
    assert found["signers"] == [keys.fingerprint(USER)]
    assert found["checks"][1]["outcome"] == "ok"
    assert "not among your trusted keys" in found["checks"][1]["detail"][0]


def test_a_bill_of_materials_is_printed_as_it_stands_in_the_sif(sif: Path, tmp_path: Path):
    assert run("sbom", str(sif)).stdout_bytes == LISTED
    assert isinstance(run("sbom", "/nope.sif").exception, BadInput)


def test_a_statement_about_another_image_is_not_signed(keys: Keys, sif: Path, tmp_path: Path):
    done = run("sign", str(sif), "--key", USER, "--provenance", "full")
    assert "No such file" in done.exception.message
    beside = tmp_path / "image.sif.provenance.json"
    for text in ("{}", "no json", '{"subject":[{"digest":{"sha256":"00"}}]}'):
        beside.write_text(text)
        assert isinstance(run("sign", str(sif), "--key", USER, "--provenance", "full").exception, BadInput)


def test_files_that_are_no_sif_are_told(tmp_path: Path, keys: Keys):
    odd = tmp_path / "odd.sif"
    odd.write_bytes(b"")
    assert "not a SIF" in run("verify", str(odd)).exception.message
    assert "No such file" in run("verify", "/nope.sif").exception.message
    assert "not a SIF" in run("sign", str(odd), "--key", USER).exception.message


def test_a_launch_records_whose_image_it_runs(keys: Keys, signed: Path, tmp_path: Path):
    tell = Told()
    check = prepared(signed, tell=tell).record.image_check
    assert (check.signature, check.signers) == ("good", (keys.fingerprint(USER),))
    assert any("is signed by" in step for step in tell.steps)
    demanded = prepared(signed, verify_key=str(keys.public(tmp_path / "k", USER))).record.image_check
    assert demanded.signature == "good"


def test_a_launch_without_signature_is_recorded_and_refused_where_one_is_demanded(keys, sif, tmp_path):
    assert prepared(sif).record.image_check.signature == "none"
    with pytest.raises(CheckFailed, match="has no signature"):
        prepared(sif, verify_key=str(keys.public(tmp_path / "k", USER)))


def test_a_launch_with_a_key_that_is_not_here_runs_unless_one_is_demanded(
    signed, keys, tmp_path, monkeypatch
):
    others = keys.public(tmp_path / "others.asc", "other@example.org")
    with gpg_home() as empty:
        monkeypatch.setenv("GNUPGHOME", str(empty.home))
        check = prepared(signed).record.image_check
        assert (check.signature, check.signers) == ("unknown-key", (keys.fingerprint(USER),))
        with pytest.raises(CheckFailed, match="not among your trusted keys"):
            prepared(signed, verify_key=str(others))
        flip(signed, 0)
        with pytest.raises(CheckFailed, match="content has changed since it was signed"):
            prepared(signed)


def test_a_wrong_byte_never_runs_unless_that_is_asked_for_and_recorded(signed: Path):
    flip(signed, 0)
    with pytest.raises(CheckFailed, match="content has changed since it was signed"):
        prepared(signed)
    tell = Told()
    assert prepared(signed, tell=tell, no_verify=True).record.image_check.signature == "not-checked"
    assert any("--no-verify" in step for step in tell.steps)


def test_a_launch_where_there_is_no_gpg_says_so(signed: Path, keys: Keys, tmp_path: Path, monkeypatch):
    others = keys.public(tmp_path / "k", USER)
    (tmp_path / "bin").mkdir()
    for program in ("/bin/sh", "/usr/bin/sha256sum"):
        (tmp_path / "bin" / Path(program).name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert prepared(signed).record.image_check.signature == "no-gpg"
    with pytest.raises(Missing, match="gpg is not installed"):
        prepared(signed, verify_key=str(others))


def test_opposite_wishes_and_a_file_of_keys_that_is_not_there_are_refused(signed: Path):
    with pytest.raises(BadInput, match="cannot be combined"):
        prepared(signed, verify_key="x", no_verify=True)
    with pytest.raises(BadInput, match="No such file"):
        prepared(signed, verify_key="/nope")
