import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.run.registry.name import is_loopback, is_registry_name, parse_name

DIGEST = "sha256:" + "a" * 64


@every_row(
    ("text", "host", "repository", "tag", "digest"),
    [
        ("docker://localhost:5000/tf:1", "localhost:5000", "tf", "1", ""),
        ("oras://registry.example/ml/tf_2--x:v2.15", "registry.example", "ml/tf_2--x", "v2.15", ""),
        ("docker://127.0.0.1:5000/a/b", "127.0.0.1:5000", "a/b", "latest", ""),
        ("docker://[::1]:5000/a:b", "[::1]:5000", "a", "b", ""),
        (f"docker://h.example/a@{DIGEST}", "h.example", "a", "", DIGEST),
        (f"docker://h.example/a:t@{DIGEST}", "h.example", "a", "t", DIGEST),
        ("docker://ubuntu:22.04", "docker.io", "library/ubuntu", "22.04", ""),
        ("docker://tensorflow/tensorflow", "docker.io", "tensorflow/tensorflow", "latest", ""),
        ("docker://index.docker.io/a/b", "docker.io", "a/b", "latest", ""),
    ],
)
def test_a_name_is_taken_apart(text, host, repository, tag, digest):
    name = parse_name(text)
    assert (name.host, name.repository, name.tag, name.digest) == (host, repository, tag, digest)
    assert parse_name(str(name)) == name
    assert name.reference == (digest or tag)


@every_row(
    "text",
    [
        "http://h.example/a",
        "h.example/a:1",
        "docker://",
        "docker:///a",
        "docker://h.example/",
        "docker://h.example/UPPER",
        "docker://user:secret@h.example/a",
        "docker://h.example:99999/a",
        "docker://h.example/a:",
        "docker://h.example/a:-x",
        "docker://h.example/a@sha256:12",
        "docker://h.example/a/../b",
        "docker://h.example/a?b",
        "oras://h.example/" + "a" * 300,
    ],
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(BadInput):
        parse_name(text)


@given(st.text(max_size=60))
def test_no_text_surprises(text):
    for scheme in ("docker://", "oras://", ""):
        try:
            name = parse_name(scheme + text)
        except BadInput:
            continue
        assert parse_name(str(name)) == name
        assert not set("?#%\\ \n") & set(name.host + name.repository + name.tag)


def test_docker_hub_is_spoken_to_under_another_name():
    assert parse_name("docker://a/b").endpoint == "registry-1.docker.io"
    assert parse_name("docker://h.example/b").endpoint == "h.example"


def test_this_machine_is_known_by_all_its_names():
    assert all(map(is_loopback, ("localhost", "localhost:5000", "127.8.9.1:1", "[::1]:5000", "[::1]")))
    assert not any(map(is_loopback, ("h.example", "10.0.0.1:5000", "localhost.h.example", "[::2]:1", "")))
    assert is_registry_name("oras://x")
    assert not is_registry_name("docker-daemon:x")
