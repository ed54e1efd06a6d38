"""Which lines of known_hosts count."""

from toolkit.run.known_hosts import paths, plain_lines


def test_a_plain_line_counts_without_its_comment():
    assert plain_lines(["far,10.0.0.1 ssh-ed25519 AAAA me@home"]) == ["far,10.0.0.1 ssh-ed25519 AAAA"]


def test_comments_empty_and_short_lines_do_not_count():
    assert plain_lines(["# x ssh-rsa A", "", "  ", "far ssh-rsa"]) == []


def test_a_certificate_authority_vouches_for_nobody():
    assert plain_lines(["@cert-authority *.example ssh-rsa AAAA"]) == []


def test_a_revoked_key_counts_nowhere():
    lines = ["far ssh-rsa BAD", "far ssh-ed25519 GOOD", "@revoked * ssh-rsa BAD", "near ssh-rsa BAD"]
    assert plain_lines(lines) == ["far ssh-ed25519 GOOD"]


def test_a_setting_names_several_files_or_one_with_spaces():
    assert paths("/a /b", lambda path: False) == ["/a", "/b"]
    assert paths("/a b", lambda path: path == "/a b") == ["/a b"]
