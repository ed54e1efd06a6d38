"""Test how toolkit reads known_hosts files, and whether it accepts a host key."""

import base64
import subprocess

from tests.unit.tables import every_row
from toolkit.run.remote.known_hosts import HostKey, is_named, judge, kinds_of, names_of, paths, read_entries


def key(kind, number):
    return HostKey(kind, len(kind).to_bytes(4, "big") + kind.encode() + bytes([number]) * 40)


ONE, TWO, RSA = key("ssh-ed25519", 1), key("ssh-ed25519", 2), key("ssh-rsa", 3)


def line(names, of, marker=""):
    return f"{marker} {names} {of.kind} {base64.b64encode(of.blob).decode()} a comment".strip()


def entries(*lines):
    return tuple(read_entries("\n".join(lines), "F"))


@every_row(
    ("names", "host", "port", "named"),
    [
        ("login.centre.org", "login.centre.org", 22, True),
        ("login.centre.org", "LOGIN.centre.org", 22, True),
        ("LOGIN.centre.org", "login.centre.org", 22, True),
        ("a,login,10.0.0.1", "10.0.0.1", 22, True),
        ("login", "login2", 22, False),
        ("*.centre.org", "login.centre.org", 22, True),
        ("*.centre.org", "centre.org", 22, False),
        ("*.centre.org", "login.centrexorg", 22, False),
        ("login?.centre.org", "login1.centre.org", 22, True),
        ("login?.centre.org", "login12.centre.org", 22, False),
        ("*.centre.org,!old.centre.org", "old.centre.org", 22, False),
        ("!old.centre.org,*.centre.org", "login.centre.org", 22, True),
        ("!old.centre.org", "login.centre.org", 22, False),
        ("[login]:2222", "login", 2222, True),
        ("[login]:2222", "login", 22, False),
        ("[*.centre.org]:2222", "login.centre.org", 2222, True),
        ("login", "login", 2222, False),
        ("[login]:22", "login", 22, False),
    ],
)
def test_which_names_a_line_is_for(names, host, port, named):
    (found,) = entries(line(names, ONE))
    assert is_named(found, names_of(host, port)[0]) is named


def test_a_hashed_name_is_found(tmp_path):
    file = tmp_path / "known"
    file.write_text(line("login,[far]:2222", ONE) + "\n")
    real = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", real], check=True)
    public = real.with_suffix(".pub").read_text().split()
    file.write_text(f"login,[far]:2222 {public[0]} {public[1]}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    text = file.read_text()
    assert "login" not in text
    found = tuple(read_entries(text, "F"))
    for host, port, named in (("login", 22, True), ("far", 2222, True), ("far", 22, False)):
        assert any(is_named(one, names_of(host, port)[0]) for one in found) is named


def test_a_fingerprint_is_the_one_that_ssh_keygen_prints(tmp_path):
    for kind in ("ed25519", "ecdsa", "rsa"):
        file = tmp_path / kind
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", file], check=True)
        (found,) = read_entries(f"h {file.with_suffix('.pub').read_text()}", "F")
        done = subprocess.run(["ssh-keygen", "-lf", file], check=True, capture_output=True, text=True)
        _, fingerprint, *_, name = done.stdout.split()
        assert str(found.key) == f"{name.strip('()')} {fingerprint}"


@every_row(
    ("lines", "offered", "verdict", "where"),
    [
        ((), ONE, "unknown", ""),
        ((line("h", ONE),), ONE, "known", "F:1"),
        ((line("h", ONE), line("h", TWO)), TWO, "known", "F:2"),
        ((line("x", TWO), line("h", ONE)), TWO, "changed", "F:2"),
        ((line("h", RSA),), ONE, "other-kind", "F:1"),
        ((line("h", ONE), line("*", ONE, "@revoked")), ONE, "revoked", "F:2"),
        ((line("h", ONE), line("other", ONE, "@revoked")), ONE, "revoked", "F:2"),
        ((line("*", TWO, "@revoked"),), ONE, "unknown", ""),
        ((line("*", TWO, "@cert-authority"),), ONE, "authority", "F:1"),
        ((line("h", ONE, "@cert-authority"),), ONE, "authority", "F:1"),
        ((line("h", ONE), line("*", TWO, "@cert-authority")), ONE, "known", "F:1"),
        ((line("h", TWO), line("*", RSA, "@cert-authority")), ONE, "changed", "F:1"),
        ((line("h", ONE, "@unheard-of"),), ONE, "unknown", ""),
        (("h ssh-ed25519 !!!", f"h ssh-rsa {base64.b64encode(ONE.blob).decode()}", "h"), ONE, "unknown", ""),
        ((f"# {line('h', ONE)}", "", line("h", ONE)), ONE, "known", "F:3"),
    ],
)
def test_what_is_said_of_a_key(lines, offered, verdict, where):
    found = judge(entries(*lines), names_of("h", 22), offered)
    assert (found.verdict, found.entry.location if found.entry else "") == (verdict, where)


def test_a_host_on_another_port_is_known_by_its_plain_name_only_if_its_key_is_there():
    names = names_of("h", 2222)
    assert judge(entries(line("h", ONE)), names, ONE).verdict == "known"
    assert judge(entries(line("h", ONE)), names, TWO).verdict == "unknown"
    assert judge(entries(line("h", ONE, "@cert-authority")), names, TWO).verdict == "authority"
    assert judge(entries(line("[h]:2222", TWO), line("h", ONE)), names, ONE).verdict == "changed"


def test_kinds_that_are_known_are_asked_for_first():
    assert kinds_of(entries(line("h", RSA), line("h", ONE), line("x", TWO)), names_of("h", 22)) == (
        "ssh-rsa",
        "ssh-ed25519",
    )


def test_files_are_several_words_or_one_name_with_spaces():
    assert paths("~/.ssh/known_hosts ~/.ssh/known_hosts2", lambda _: False) == [
        "~/.ssh/known_hosts",
        "~/.ssh/known_hosts2",
    ]
    assert paths("/home/a b/known_hosts", lambda path: path == "/home/a b/known_hosts") == [
        "/home/a b/known_hosts"
    ]
