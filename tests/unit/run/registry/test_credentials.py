import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.run.registry.credentials import Login, find_login, read_config
from toolkit.run.registry.tokens import basic, read_token
from toolkit.run.registry.trust import tls_settings


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "APPTAINER_CONFIGDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(home, value, file=".docker/config.json"):
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return str(path)


def auth(user="ada"):
    return {"auth": base64.b64encode(f"{user}:se:cret".encode()).decode()}


def test_nothing_is_known_where_nobody_logged_in(home):
    assert find_login("h.example") is None


def test_without_a_home_folder_what_is_named_counts(home, monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert find_login("h.example") is None
    tls_settings(None, "h.example")
    named = write(home, {"auths": {"h.example": auth("dora")}}, "folder/config.json")
    monkeypatch.setenv("DOCKER_CONFIG", str(Path(named).parent))
    assert find_login("h.example").user == "dora"


@every_row("key", ["h.example:5000", "https://h.example:5000", "https://h.example:5000/v1/"])
def test_what_docker_login_writes(home, key):
    file = write(home, {"auths": {"other.example": auth("bob"), key: auth()}})
    assert find_login("h.example:5000") == Login(file, "ada", "se:cret")
    assert find_login("h.example") is None


def test_docker_hub_has_a_name_of_its_own(home):
    write(home, {"auths": {"https://index.docker.io/v1/": auth()}})
    assert find_login("docker.io").user == "ada"


def test_apptainers_file_and_the_one_that_is_named(home, monkeypatch):
    write(home, {"auths": {"h.example": auth("carl")}}, ".apptainer/docker-config.json")
    assert find_login("h.example").user == "carl"
    named = write(home, {"auths": {"h.example": auth("dora")}}, "named.json")
    monkeypatch.setenv("REGISTRY_AUTH_FILE", named)
    assert find_login("h.example").user == "dora"


def test_an_identity_token(home):
    file = write(home, {"auths": {"h.example": {"identitytoken": "abc"}}})
    assert find_login("h.example") == Login(file, token="abc")  # noqa: S106 - a made-up one


def test_no_secret_is_shown_by_accident():
    assert "secret" not in repr(Login("file", "ada", "secret", "secret", "secret"))


def helper(home, monkeypatch, script):
    program = home / "bin" / "docker-credential-test"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")


@every_row("config", [{"credHelpers": {"h.example": "test"}}, {"credsStore": "test"}])
def test_a_helper_is_asked(home, monkeypatch, config):
    write(home, config)
    helper(home, monkeypatch, 'read key; echo "{\\"Username\\":\\"$1 $key\\",\\"Secret\\":\\"s\\"}"')
    assert find_login("h.example") == Login("docker-credential-test", "get h.example", "s")


def test_a_helper_may_tell_a_token(home, monkeypatch):
    write(home, {"credsStore": "test"})
    helper(home, monkeypatch, """echo '{"Username":"<token>","Secret":"s"}'""")
    assert find_login("h.example") == Login("docker-credential-test", token="s")  # noqa: S106 - a made-up one


def test_a_helper_that_knows_nobody(home, monkeypatch):
    write(home, {"credsStore": "test"})
    helper(home, monkeypatch, "echo credentials not found in native keychain; exit 1")
    assert find_login("h.example") is None


@every_row(
    ("script", "said"),
    [("echo locked >&2; exit 1", "locked"), ("echo no json", "expected JSON with Username")],
)
def test_a_helper_that_fails_is_told(home, monkeypatch, script, said):
    write(home, {"credsStore": "test"})
    helper(home, monkeypatch, script)
    with pytest.raises(CheckFailed, match=said):
        find_login("h.example")


def test_a_helper_that_is_not_there_or_no_name(home):
    write(home, {"credsStore": "not-there"})
    with pytest.raises(Missing, match="docker-credential-not-there, which is not installed"):
        find_login("h.example")
    write(home, {"credsStore": "../../bin/sh"})
    with pytest.raises(BadInput, match="not the name of a credential helper"):
        find_login("h.example")


@every_row("text", ["{", "[]", '{"auths": 3}'])
def test_a_damaged_file_is_named_and_not_shown(home, text):
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config\.json: not a valid login file in Docker's format"):
        find_login("h.example")
    write(home, {"auths": {"h.example": {"auth": "%%%"}}})
    with pytest.raises(BadInput, match="does not contain a user and a password in base64"):
        find_login("h.example")


@given(st.binary(max_size=80))
def test_no_config_surprises(tmp_path_factory, text):
    with contextlib.suppress(BadInput):
        read_config(text, tmp_path_factory.getbasetemp() / "config.json")


def test_basic_is_what_the_rfc_says():
    assert basic(Login("", "Aladdin", "open sesame")) == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


def test_a_token_by_either_name():
    assert read_token(b'{"token": "a"}', "h") == read_token(b'{"access_token": "a"}', "h") == "a"


@every_row("text", [b"", b"{}", b"[]", b'{"token": "a b"}', b'{"token": "a\\r\\nX: y"}', b"\xff"])
def test_what_no_header_can_carry_is_no_token(text):
    with pytest.raises(CheckFailed):
        read_token(text, "h")
