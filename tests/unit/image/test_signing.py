from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forked
from tests.unit.image.signed import OBJECTS, Keys, attach, gpg_home, write_sif
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.image.files.digest import check_digest, digest_file
from toolkit.image.files.sif.sifobjects import JSON, SIGNATURE, Object, add, content, read_table
from toolkit.image.trust import signing
from toolkit.image.trust.signing import CheckedSignature, coverage_gap, is_signed, sign, signatures
from toolkit.model.progress import Silent
from toolkit.run.gpg import verifier

LONG_AGO = 1_500_000_000
USER = "Builder <builder@example.org>"


@pytest.fixture(scope="module")
def home() -> Iterator[Keys]:
    with gpg_home() as keys:
        keys.make(USER)
        yield keys


@pytest.fixture
def keys(home: Keys, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("GNUPGHOME", str(home.home))
    return home


@pytest.fixture
def sif(tmp_path: Path) -> Path:
    return write_sif(tmp_path / "image.sif")


def checked(sif: Path, keyring: Path | None = None) -> tuple[CheckedSignature, ...]:
    with sif.open("rb") as file, verifier(keyring) as keys:
        return tuple(signatures(file, sif, keys))


def state(sif: Path, keyring: Path | None = None) -> str:
    (one,) = checked(sif, keyring)
    return one.signature.state


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_signed_sif_is_good_for_whoever_has_the_key(keys: Keys, sif: Path, tmp_path: Path):
    made = sign(sif, "builder@example.org", Silent())
    for armor in (True, False):
        (one,) = checked(sif, keys.public(tmp_path / "public", USER, armor=armor))
        assert (one.holds, one.group, one.signature.user) == (True, 1, USER)
        assert one.signature.fingerprint == made.fingerprint == keys.fingerprint(USER)
    with sif.open("rb") as file:
        assert coverage_gap(file, sif, {1}) == ""


def test_signing_keeps_every_object_where_it_was_and_notes_the_new_checksum(keys: Keys, sif: Path):
    before = sif.read_bytes()
    digest_file(sif).write_text(f"{hash_file(sif)}  image.sif\n")
    sif.chmod(0o755)
    made = sign(sif, keys.fingerprint(USER), Silent())
    after = sif.read_bytes()
    with sif.open("rb") as file:
        data = read_table(file, sif).header.data
    assert after[data : len(before)] == before[data:]
    assert made.sha256 == check_digest(sif) == hash_file(sif)
    assert sif.stat().st_mode & 0o777 == 0o755
    assert left_over(sif.parent) == {"image.sif", "image.sif.sha256"}


def test_the_secret_key_of_another_home_is_not_needed_to_verify(keys: Keys, sif: Path, tmp_path, monkeypatch):
    sign(sif, "builder@example.org", Silent())
    public = keys.public(tmp_path / "public.asc", USER)
    with gpg_home() as other:
        monkeypatch.setenv("GNUPGHOME", str(other.home))
        assert state(sif) == "unknown-key"
        assert state(sif, public) == "good"


@every_row("number", range(len(OBJECTS)))
def test_a_flipped_byte_in_any_object_is_found_and_named(keys: Keys, sif: Path, number: int):
    sign(sif, "builder@example.org", Silent())
    with sif.open("r+b") as file:
        entry = read_table(file, sif).used[number]
        file.seek(entry.offset + entry.size // 2)
        byte = file.read(1)[0]
        file.seek(entry.offset + entry.size // 2)
        file.write(bytes([byte ^ 0x10]))
    (one,) = checked(sif)
    assert one.signature.state == "good"
    assert not one.holds
    assert one.differences == (f"{entry.label}: its content has changed since it was signed",)


def test_a_flipped_byte_in_the_signature_is_bad_or_unreadable(keys: Keys, sif: Path):
    sign(sif, "builder@example.org", Silent())
    with sif.open("r+b") as file:
        entry = read_table(file, sif).used[-1]
        text = content(file, entry, 1 << 20)
        at = text.index(b"sha256:") + 10
        file.seek(entry.offset + at)
        file.write(b"0" if text[at : at + 1] != b"0" else b"1")
    assert state(sif) == "bad"


def test_a_flipped_byte_in_the_header_is_found(keys: Keys, sif: Path):
    sign(sif, "builder@example.org", Silent())
    with sif.open("r+b") as file:
        file.seek(50)
        file.write(b"\xff")
    (one,) = checked(sif)
    assert one.differences == ("the SIF header differs from the signed header",)


def test_an_object_that_was_added_after_signing_is_named(keys: Keys, sif: Path):
    sign(sif, "builder@example.org", Silent())
    with sif.open("r+b") as file:
        add(file, sif, Object(JSON, b"{}", "late"))
    assert checked(sif)[0].differences == ("object 5 (late) was added after signing",)


def test_an_object_in_a_group_of_its_own_is_not_covered(keys: Keys, sif: Path):
    sign(sif, "builder@example.org", Silent())
    with sif.open("r+b") as file:
        add(file, sif, Object(JSON, b"{}", "late", group=2))
    found = checked(sif)
    assert [one.holds for one in found] == [True]
    with sif.open("rb") as file:
        assert coverage_gap(file, sif, {1}) == "no valid signature covers group 2 of the SIF's objects"


def test_a_signature_of_another_file_does_not_hold(keys: Keys, sif: Path, tmp_path: Path):
    other = write_sif(tmp_path / "other.sif", Object(JSON, b'{"another":1}', "provenance.json"))
    sign(other, "builder@example.org", Silent())
    with other.open("rb") as file:
        entry = read_table(file, other).used[-1]
        stolen = content(file, entry, 1 << 20)
    with sif.open("r+b") as file:
        add(file, sif, Object(SIGNATURE, stolen, group=0, signed_group=1, extra=entry.extra))
    (one,) = checked(sif)
    assert one.signature.state == "good"
    assert len(one.differences) == 4


def test_keys_that_have_expired_or_were_revoked_are_told_apart(keys: Keys, sif: Path, tmp_path, monkeypatch):
    with gpg_home() as own:
        monkeypatch.setenv("GNUPGHOME", str(own.home))
        short = own.make("Short <short@example.org>", expires="1y", at=LONG_AGO)
        revoked = own.make("Revoked <revoked@example.org>")
        attach(sif, own, short, at=LONG_AGO + 60)
        second = write_sif(tmp_path / "second.sif")
        sign(second, revoked, Silent())
        assert state(second) == "good"
        own.revoke(revoked)
        keyring = own.public(tmp_path / "all.asc")
        assert (state(sif), state(sif, keyring)) == ("expired-key", "expired-key")
        assert (state(second), state(second, keyring)) == ("revoked", "revoked")
        assert not checked(sif)[0].holds
        with pytest.raises(CheckFailed, match="has expired"):
            sign(sif, short, Silent())
        with pytest.raises(CheckFailed, match="was revoked"):
            sign(sif, revoked, Silent())


def test_a_signature_whose_own_time_is_over_has_expired(keys: Keys, sif: Path):
    old = keys.make("Old <old@example.org>", at=LONG_AGO)
    attach(sif, keys, old, "--default-sig-expire", "1d", at=LONG_AGO + 60)
    assert state(sif) == "expired"


def test_a_second_message_behind_the_first_is_no_signature(keys: Keys, sif: Path):
    sign(sif, "builder@example.org", Silent())
    with sif.open("rb") as file:
        message = content(file, read_table(file, sif).used[-1], 1 << 20)
    with verifier(None) as verified:
        assert verified.check(message).state == "good"
        assert verified.check(message + message).state == "unreadable"
        assert verified.check(b"-----BEGIN PGP SIGNED MESSAGE-----\n").state == "unreadable"
        assert verified.check(b"").state == "unreadable"


def test_what_gpg_calls_good_by_sha1_is_not(keys: Keys, sif: Path):
    message = keys.gpg("--digest-algo", "SHA1", "--clearsign", stdin=b"text")
    with verifier(None) as verified:
        assert verified.check(message).state in {"unreadable", "bad"}


def test_no_key_several_keys_and_what_is_no_key_are_refused(keys: Keys, sif: Path):
    before = sif.read_bytes()
    with pytest.raises(Missing, match="no such secret key"):
        sign(sif, "nobody@example.org", Silent())
    with pytest.raises(BadInput, match="give a fingerprint"):
        sign(sif, "--homedir=/tmp", Silent())
    keys.make("Builder Two <builder@example.org.example>")
    with pytest.raises(BadInput, match="several keys"):
        sign(sif, "builder", Silent())
    assert sif.read_bytes() == before


def test_a_locked_key_without_a_person_is_told_and_leaves_the_file(sif: Path, monkeypatch):
    with gpg_home() as own:
        monkeypatch.setenv("GNUPGHOME", str(own.home))
        (own.home / "gpg-agent.conf").write_text("pinentry-program /bin/false\n")
        key = own.make("Locked <locked@example.org>", passphrase="words of a person")  # noqa: S106
        own.forget_passphrases()
        before = sif.read_bytes()
        with pytest.raises(CheckFailed, match="did not sign") as told:
            sign(sif, key, Silent())
        assert "agent" in told.value.fix
        assert sif.read_bytes() == before
        assert left_over(sif.parent) == {"image.sif"}


def test_a_damaged_or_full_sif_is_not_signed(keys: Keys, sif: Path, tmp_path: Path):
    digest_file(sif).write_text(f"{'0' * 64}  image.sif\n")
    with pytest.raises(CheckFailed, match="has changed since"):
        sign(sif, "builder@example.org", Silent())
    full = write_sif(tmp_path / "full.sif", slots=3)
    with pytest.raises(CheckFailed, match="no free entry"):
        sign(full, "builder@example.org", Silent())
    short = tmp_path / "short.sif"
    short.write_bytes(sif.read_bytes()[:-100])
    with pytest.raises(CheckFailed, match="incomplete"):
        sign(short, "builder@example.org", Silent())
    with pytest.raises(BadInput, match="no public key"):
        checked(sif, sif)


def test_unsigned_is_told_from_signed(keys: Keys, sif: Path):
    assert not is_signed(sif)
    sign(sif, "builder@example.org", Silent())
    assert is_signed(sif)


@every_row("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), CheckFailed("x")])
def test_whatever_ends_the_signing_the_old_file_stays_and_nothing_beside_it(keys, sif, monkeypatch, error):
    def fail(*_given: object) -> bytes:
        raise error

    before = sif.read_bytes()
    for name in ("clearsign", "hash_file"):
        with monkeypatch.context() as patch:
            patch.setattr(f"toolkit.image.trust.signing.{name}", fail)
            with pytest.raises((KeyboardInterrupt, CheckFailed)):
                sign(sif, "builder@example.org", Silent())
        assert sif.read_bytes() == before
        assert left_over(sif.parent) == {"image.sif"}
    sign(sif, "builder@example.org", Silent())
    assert checked(sif)[0].holds


def full(number: int) -> Object:
    return Object(JSON, f'{{"full":{number}}}'.encode(), "provenance-full.intoto.json")


@every_row("second", [USER, "Centre <centre@example.org>"])
def test_an_object_that_a_later_signature_adds_leaves_the_earlier_ones_good(
    keys: Keys, tmp_path: Path, second: str
):
    sif = write_sif(tmp_path / "image.sif", slots=16)
    first, later = keys.fingerprint(USER), keys.fingerprint(USER) if second == USER else keys.make(second)
    sign(sif, first, Silent())
    for number in range(2):
        sign(sif, later, Silent(), extra=(full(number),))
    found = checked(sif)
    assert [one.holds for one in found] == [True] * 6
    assert [one.group for one in found] == [1, 1, 2, 1, 2, 3]
    assert [one.signature.fingerprint for one in found] == [first, *[later] * 5]
    with sif.open("rb") as file:
        assert coverage_gap(file, sif, {1, 2, 3}) == ""
        table = read_table(file, sif)
        assert [entry.group for entry in table.used if entry.name.startswith(b"provenance-full")] == [2, 3]


def test_an_object_that_the_first_signature_adds_is_in_the_group_of_the_others(keys: Keys, sif: Path):
    sign(sif, keys.fingerprint(USER), Silent(), extra=(full(1),))
    (one,) = checked(sif)
    assert (one.holds, one.group) == (True, 1)


def test_a_new_signature_is_not_judged_by_an_old_one_of_the_same_key(keys: Keys, sif: Path):
    sign(sif, keys.fingerprint(USER), Silent())
    with sif.open("r+b") as file:
        add(file, sif, Object(JSON, b"{}", "late"))
    digest_file(sif).unlink()
    sign(sif, keys.fingerprint(USER), Silent())
    assert [one.holds for one in checked(sif)] == [False, True]


def test_behind_a_link_the_file_itself_is_signed(keys: Keys, tmp_path: Path):
    for name in ("scratch", "home"):
        (tmp_path / name).mkdir()
    real, link = write_sif(tmp_path / "scratch" / "real.sif"), tmp_path / "home" / "image.sif"
    link.symlink_to(real)
    made = sign(link, keys.fingerprint(USER), Silent())
    assert link.is_symlink()
    assert link.readlink() == real
    assert is_signed(real)
    assert made.sha256 == check_digest(real) == hash_file(real)
    assert left_over(link.parent) == {"image.sif"}
    assert left_over(real.parent) == {"real.sif", "real.sif.sha256"}


def test_four_processes_that_sign_one_sif_at_once_all_leave_their_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sif = write_sif(tmp_path / "image.sif")
    people = [f"p{number}@example.org" for number in range(4)]
    with gpg_home() as keys:
        monkeypatch.setenv("GNUPGHOME", str(keys.home))
        for person in people:
            keys.make(person)
        with (tmp_path / "said").open("w+b") as said:
            streams = (said.fileno(), said.fileno(), said.fileno())
            running = [forked.start(("image", "sign", sif, "--key", person), streams) for person in people]
            assert [process.wait(120) for process in running] == [0] * 4, (tmp_path / "said").read_text()
        assert {one.signature.user for one in checked(sif) if one.holds} == set(people)
    assert check_digest(sif) == hash_file(sif)


def test_a_sif_that_another_program_replaces_while_it_is_signed_is_left_as_that_program_made_it(
    keys: Keys, sif: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    newer = write_sif(tmp_path / "newer.sif", Object(JSON, b"{}", "newer.json"))
    content_of_newer = newer.read_bytes()
    clearsign = signing.clearsign

    def meanwhile(*words):
        if newer.exists():
            newer.replace(sif)
        return clearsign(*words)

    monkeypatch.setattr(signing, "clearsign", meanwhile)
    with pytest.raises(CheckFailed, match="another program changed the SIF"):
        sign(sif, USER, Silent())
    assert sif.read_bytes() == content_of_newer
    assert left_over(tmp_path) == {"image.sif"}
