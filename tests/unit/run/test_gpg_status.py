"""Test how toolkit reads gpg's status lines about a signature; a user ID in them can be any text."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.run.gpg_status import has_signed, signature

KEY = "F79EF7C4DE6CF01D"
PRINT = f"599F31FB36A9D3644055E8D3{KEY}"
GOOD = f"[GNUPG:] GOODSIG {KEY} Ada <ada@example.org>"
VALID = f"[GNUPG:] VALIDSIG {PRINT} 2026-11-21 1795272063 0 4 0 22 8 01 {PRINT}"


def test_a_good_signature_is_told_with_key_person_and_time():
    found = signature(f"{GOOD}\n{VALID}\n", b"text")
    assert (found.state, found.fingerprint, found.user) == ("good", PRINT, "Ada <ada@example.org>")
    assert (found.made, found.text) == ("2026-11-21T14:41:03+00:00", b"text")


@every_row(("word", "state"), [("EXPKEYSIG", "expired-key"), ("EXPSIG", "expired"), ("REVKEYSIG", "revoked")])
def test_what_was_good_once_is_told_apart(word, state):
    assert signature(f"{GOOD.replace('GOODSIG', word)}\n{VALID}", b"").state == state


def test_a_bad_signature_has_a_key_and_vouches_for_no_text():
    found = signature(f"[GNUPG:] BADSIG {KEY} Ada", b"text")
    assert (found.state, found.fingerprint, found.text) == ("bad", KEY, b"")


def test_an_unknown_key_is_named_by_its_fingerprint_or_its_number():
    line = f"[GNUPG:] ERRSIG {KEY} 22 8 01 1795272063 9"
    assert signature(f"{line} {PRINT}", b"").fingerprint == PRINT
    assert signature(f"{line} -", b"").fingerprint == KEY
    assert signature(line, b"").state == "unknown-key"
    assert signature(line[:-1] + "4", b"").state == "unreadable"


@every_row(
    "status",
    [
        "",
        GOOD,
        VALID,
        f"{GOOD}\n{VALID}\n{VALID}",
        f"{GOOD}\n{GOOD}\n{VALID}",
        f"[GNUPG:] BADSIG {KEY} x\n{GOOD}\n{VALID}",
        f"{GOOD}\n{VALID}\n[GNUPG:] NODATA 4",
        f"{GOOD}\n{VALID}\n[GNUPG:] ERROR proc_pkt.plaintext 89_BAD_DATA",
        f"{GOOD}\n{VALID.replace(' 8 01', ' 2 01')}",
        f"gpg: {GOOD}\n{VALID}",
        f"{GOOD}\n[GNUPG:] VALIDSIG {PRINT}",
    ],
)
def test_anything_but_one_verdict_with_one_proof_is_not_good(status):
    assert signature(status, b"text").state != "good"


@given(st.text(max_size=300))
def test_no_text_breaks_it_or_is_good(status):
    assert signature(status, b"").state != "good"
    assert not has_signed(status)


@given(st.text(max_size=100))
def test_a_user_id_cannot_write_a_line_of_its_own(user):
    found = signature(f"[GNUPG:] REVKEYSIG {KEY} {user.replace(chr(10), ' ')}\n{VALID}", b"")
    assert found.user.isprintable()
    assert found.state in {"revoked", "unreadable"}


def test_a_line_break_of_unicode_in_a_user_id_begins_no_line():
    status = f"[GNUPG:] BADSIG {KEY} Ada\u2028{VALID}"
    assert signature(status, b"").state == "bad"
    assert signature(f"[GNUPG:] NEWSIG \u2028{GOOD}\u2028{VALID}", b"text").state == "unreadable"


@given(
    st.lists(
        st.sampled_from(["GOODSIG", "VALIDSIG", "ERRSIG", "EXPSIG", KEY, PRINT, "9", "8", "99999999999"])
    )
)
def test_lines_with_too_few_or_odd_words_do_not_break_it(words):
    signature(f"[GNUPG:] {' '.join(words)}", b"")
    signature(f"[GNUPG:] {' '.join(words)}\n{VALID}", b"")


def test_a_signature_was_made_only_if_gpg_says_so_and_by_a_sound_hash():
    line = f"[GNUPG:] SIG_CREATED C 22 8 01 1795272063 {PRINT}"
    assert has_signed(line)
    assert not has_signed(line.replace(" 8 ", " 2 "))
    assert not has_signed("")
