from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.run.registry.download import begins_at, fetch_blob
from toolkit.run.registry.images import fetch_manifest, put_manifest
from toolkit.run.registry.manifest import Descriptor, digest_of
from toolkit.run.registry.name import parse_name
from toolkit.run.registry.session import RegistryAccess, RegistrySession, open_session
from toolkit.run.registry.trust import tls_settings
from toolkit.run.registry.upload import Blob, received_bytes, send_blob, with_digest

CONTENT = bytes(range(256)) * 40
BLOB = Descriptor("x", digest_of(CONTENT), len(CONTENT))
WHERE = f"GET /v2/a/blobs/{BLOB.digest}"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def name(server):
    return parse_name(f"docker://{server.host}/a:1")


@pytest.fixture
def session(name):
    made = RegistrySession(name, RegistryAccess(plain_http=True, pause=lambda _: None))
    yield made
    made.close()


def get(session, name, part):
    fetch_blob(session, name, BLOB, part, lambda _: None)


def test_a_blob_is_fetched_and_checked(server, session, name, tmp_path):
    server.answers[WHERE] = (200, {}, CONTENT)
    get(session, name, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == CONTENT


def ranged(handler, _body):
    start = int(handler.headers["Range"].removeprefix("bytes=").rstrip("-"))
    return 206, {"Content-Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"}, CONTENT[start:]


def test_what_is_there_is_not_fetched_again(server, session, name, tmp_path):
    server.answers[WHERE] = ranged
    (tmp_path / "part").write_bytes(CONTENT[:5000])
    get(session, name, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert server.asked[-1][1]["Range"] == "bytes=5000-"


def test_a_server_that_ignores_the_range_sends_all(server, session, name, tmp_path):
    server.answers[WHERE] = (200, {}, CONTENT)
    (tmp_path / "part").write_bytes(b"z" * 5000)
    get(session, name, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_a_damaged_rest_is_fetched_again(server, session, name, tmp_path):
    def answer(handler, body):
        return ranged(handler, body) if handler.headers.get("Range") else (200, {}, CONTENT)

    server.answers[WHERE] = answer
    (tmp_path / "part").write_bytes(b"z" * 5000)
    get(session, name, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == CONTENT


def test_wrong_bytes_are_told_and_removed(server, session, name, tmp_path):
    server.answers[WHERE] = (200, {}, b"z" * len(CONTENT))
    with pytest.raises(CheckFailed, match="differs from its digest"):
        get(session, name, tmp_path / "part")
    assert not (tmp_path / "part").exists()


def test_more_bytes_than_there_should_be_end_it(server, session, name, tmp_path):
    server.answers[WHERE] = (200, {}, CONTENT + b"more")
    with pytest.raises(CheckFailed, match="sends more than the"):
        get(session, name, tmp_path / "part")


def test_a_server_that_breaks_off_is_asked_for_the_rest(server, session, name, tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.run.registry.download._STEP", 1000)
    short = (200, {"Content-Length": str(len(CONTENT))}, CONTENT[:3000])
    server.answers[WHERE] = [short, ranged]
    get(session, name, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == CONTENT
    assert server.asked[-1][1]["Range"] == "bytes=3000-"


def test_a_server_that_always_breaks_off_is_given_up_and_the_rest_stays(server, session, name, tmp_path):
    server.answers[WHERE] = (200, {"Content-Length": str(len(CONTENT))}, CONTENT[:3000])
    with pytest.raises(Missing):
        get(session, name, tmp_path / "part")
    assert (tmp_path / "part").exists()
    assert len(server.asked) < 20


def test_a_disk_that_fills_up_is_told_as_such(server, session, name):
    server.answers[WHERE] = (200, {}, CONTENT)
    with pytest.raises(CheckFailed, match="the disk is full: /dev") as caught:
        get(session, name, Path("/dev/full"))
    assert "resume the transfer" in caught.value.fix


def test_a_busy_server_is_asked_again_and_a_lasting_error_is_told(server, session, name):
    server.answers["GET /v2/"] = [(503, {}, b""), (429, {"Retry-After": "1"}, b""), (200, {}, b"{}")]
    session.find()
    assert len(server.asked) == 3
    server.answers["GET /v2/"] = (500, {}, b'{"errors": [{"code": "UNKNOWN", "message": "disk\\nfull"}]}')
    with pytest.raises(Missing, match="answers with HTTP status 500 repeatedly: UNKNOWN: disk full"):
        session.find()


def test_a_manifest_of_another_digest_is_refused(server, session, name):
    server.answers["GET /v2/a/manifests/1"] = (200, {"Docker-Content-Digest": BLOB.digest}, b"{}")
    with pytest.raises(CheckFailed, match="differs from its digest"):
        fetch_manifest(session, name, "1")


def test_a_manifest_that_never_ends_is_refused(server, session, name):
    server.answers["GET /v2/a/manifests/1"] = (200, {}, b" " * (5 << 20))
    with pytest.raises(CheckFailed, match="larger than 4 MiB"):
        fetch_manifest(session, name, "1")


def test_a_registry_that_stored_another_manifest_is_told(server, session, name):
    server.answers["PUT /v2/a/manifests/1"] = (201, {"Docker-Content-Digest": BLOB.digest}, b"")
    with pytest.raises(CheckFailed, match="differs from its digest"):
        put_manifest(session, name, b"{}", "x")


def logged_in(home, host):
    (home / "docker").mkdir()
    (home / "docker" / "config.json").write_text(f'{{"auths": {{"{host}": {{"auth": "YTpi"}}}}}}')


def test_a_token_is_fetched_with_our_password_and_shown(server, name, home):
    logged_in(home, server.host)
    challenge = f'Bearer realm="http://{server.host}/token",service="s"'

    def guarded(handler, _body):
        proven = handler.headers.get("Authorization") == "Bearer t1"
        return (200, {}, b"{}") if proven else (401, {"WWW-Authenticate": challenge}, b"")

    server.answers |= {"GET /v2/": guarded, "GET /x": guarded, "GET /token": (200, {}, b'{"token": "t1"}')}
    with open_session(name, RegistryAccess(plain_http=True)) as session:
        session.ask("GET", "/x", statuses=(200,), scope="repository:a:pull repository:b:pull").close()
    shown = [headers.get("Authorization") for key, headers, _ in server.asked if key == "GET /token"]
    assert shown == ["Basic YTpi"]


@every_row("realm", ["http://far.example/token", "", "file:///etc/passwd", "https://[", "//x"])
def test_no_password_goes_where_tls_does_not_protect_it(server, name, home, realm):
    logged_in(home, server.host)
    server.answers["GET /x"] = (401, {"WWW-Authenticate": f'Bearer realm="{realm}"'}, b"")
    with (
        open_session(name, RegistryAccess(plain_http=True)) as session,
        pytest.raises(CheckFailed, match="names a token server at"),
    ):
        session.ask("GET", "/x", statuses=(200,), scope="a")


FAR = "far.example:5000"


def beyond(server, home, monkeypatch, entry):
    """Return an image name on a registry without TLS; ``server``, an HTTP proxy, answers for the registry."""
    (home / "docker").mkdir()
    (home / "docker" / "config.json").write_text(f'{{"auths": {{"{FAR}": {entry}}}}}')
    monkeypatch.setenv("http_proxy", f"http://{server.host}")
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    server.answers[f"GET http://{FAR}/v2/"] = (200, {}, b"{}")
    return parse_name(f"docker://{FAR}/a:1")


@every_row(
    ("entry", "challenge"),
    [
        ('{"auth": "YTpi"}', 'Basic realm="x"'),
        ('{"registrytoken": "secret"}', 'Bearer realm="https://far.example/token"'),
    ],
)
def test_nothing_secret_goes_to_another_machine_without_tls(server, home, monkeypatch, entry, challenge):
    far = beyond(server, home, monkeypatch, entry)
    server.answers[f"GET http://{FAR}/x"] = (401, {"WWW-Authenticate": challenge}, b"")
    with (
        open_session(far, RegistryAccess(plain_http=True)) as session,
        pytest.raises(CheckFailed, match="plain HTTP") as told,
    ):
        session.ask("GET", "/x", statuses=(200,), scope="a")
    assert "--plain-http" in told.value.fix
    assert len(server.asked) == 2
    assert not any("Authorization" in headers for _, headers, _ in server.asked)


def test_addresses_of_a_registry_are_told_without_a_password(server, name, home):
    logged_in(home, server.host)
    session = RegistrySession(name, RegistryAccess())
    with pytest.raises(CheckFailed, match=r"h\.example") as caught:
        session.absolute("http://ada:s3cret@h.example/x")
    assert "s3cret" not in str(caught.value)
    realm = "https://ada:s3cret@h.example/token"
    server.answers["GET /x"] = (401, {"WWW-Authenticate": f'Bearer realm="{realm}"'}, b"")
    with (
        open_session(name, RegistryAccess(plain_http=True)) as session,
        pytest.raises(CheckFailed, match=r"h\.example") as caught,
    ):
        session.ask("GET", "/x", statuses=(200,), scope="a")
    assert "s3cret" not in str(caught.value)


MANIFEST = b'{"schemaVersion": 2}'
BROKEN = (200, {"Content-Length": "1000"}, MANIFEST)


def test_a_manifest_that_breaks_off_is_asked_for_again_but_not_for_ever(server, session, name):
    server.answers["GET /v2/a/manifests/1"] = [BROKEN, (200, {}, MANIFEST)]
    assert fetch_manifest(session, name, "1")[0] == MANIFEST
    server.answers["GET /v2/a/manifests/1"] = BROKEN
    with pytest.raises(Missing, match="cannot be reached: the connection was interrupted"):
        fetch_manifest(session, name, "1")
    assert len(server.asked) == 8


DENIED = b'{"errors": [{"code": "DENIED", "message": "access is denied"}]}'
HERE = "repository:ml/a:pull"


def with_tokens(server, token):
    challenge = f'Bearer realm="http://{server.host}/token"'
    server.answers["GET /x"] = (401, {"WWW-Authenticate": challenge}, b"")
    server.answers["GET /token"] = token


def test_a_token_that_breaks_off_is_asked_for_again(server, session):
    with_tokens(server, [(200, {"Content-Length": "1000"}, b"{"), (200, {}, b'{"token": "t"}')])
    server.answers["GET /x"] = [server.answers["GET /x"]] * 2 + [(200, {}, b"")]
    session.ask("GET", "/x", statuses=(200,), scope=HERE).close()
    with_tokens(server, (200, {"Content-Length": "1000"}, b"{"))
    with pytest.raises(Missing, match="the connection was interrupted"):
        session.ask("GET", "/x", statuses=(200,), scope="another")


def failure(name, scope):
    with open_session(name, RegistryAccess(plain_http=True)) as session, pytest.raises(Missing) as caught:
        session.ask("GET", "/x", statuses=(200,), scope=scope)
    return caught.value


@every_row("status", [401, 403])
def test_who_may_not_read_an_image_is_told_so_and_not_that_the_password_is_wrong(server, name, home, status):
    logged_in(home, server.host)
    with_tokens(server, (200, {}, b'{"token": "t"}'))
    server.answers["GET /x"] = [server.answers["GET /x"], (status, {}, DENIED)]
    told = failure(name, HERE)
    where = f"{server.host}/ml/a: no such image"
    assert told.message == f"{where}, or a cannot read it: DENIED: access is denied"
    assert f"docker login {server.host}" in told.fix


def test_a_server_of_tokens_that_allows_it_not_is_told_with_its_words(server, name, home):
    with_tokens(server, (403, {}, DENIED))
    assert "or a login is needed to write it: DENIED" in failure(name, "repository:ml/a:pull,push").message
    logged_in(home, server.host)
    assert "or a cannot write it: DENIED" in failure(name, "repository:ml/a:pull,push").message


def test_where_an_answer_has_no_body_its_header_has_the_words(server, name):
    with_tokens(server, (200, {}, b'{"token": "t"}'))
    realm = f'Bearer realm="http://{server.host}/token",error="insufficient_scope"'
    server.answers["GET /x"] = (401, {"WWW-Authenticate": realm}, b"")
    assert failure(name, HERE).message.endswith("or a login is needed to read it: insufficient_scope")


def test_a_server_of_tokens_that_refuses_a_password_is_told_as_before(server, name, home):
    logged_in(home, server.host)
    with_tokens(server, (401, {}, b""))
    assert "does not accept the user and password" in failure(name, HERE).message


def test_a_wrong_password_is_told_with_its_file_and_not_shown(server, name, home):
    logged_in(home, server.host)
    server.answers["GET /x"] = (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
    refused = pytest.raises(Missing, match=r"does not accept.*config\.json")
    with open_session(name, RegistryAccess(plain_http=True)) as session, refused as caught:
        session.ask("GET", "/x", statuses=(200,), scope="a")
    assert "YTpi" not in str(caught.value)


def test_another_host_is_not_shown_our_password(server, name, home):
    logged_in(home, server.host)
    other = type(server)()
    try:
        guarded = [(401, {"WWW-Authenticate": 'Basic realm="x"'}, b""), (200, {}, b"{}")]
        server.answers["GET /x"] = guarded
        other.answers["PUT /up"] = (201, {}, b"")
        session = RegistrySession(name, RegistryAccess(plain_http=True))
        session.ask("GET", "/x", statuses=(200,), scope="a").close()
        session.ask("PUT", f"http://{other.host}/up", statuses=(201,), scope="a", data=b"x").close()
        session.close()
        assert "Authorization" in server.asked[-1][1]
        assert "Authorization" not in other.asked[-1][1]
    finally:
        other.close()


def test_no_step_leads_from_tls_to_plain_http(name):
    session = RegistrySession(name, RegistryAccess())
    with pytest.raises(CheckFailed, match="not protected by TLS"):
        session.absolute("http://h.example/x")
    with pytest.raises(CheckFailed, match="not a valid address"):
        session.absolute("https://[")


class Memory:
    def read_at(self, offset, count):
        return CONTENT[offset : offset + count]


def upload_answers(server, patches):
    """Let the fake registry accept an upload; it has the blob only after the upload is complete."""
    server.answers |= {
        f"HEAD /v2/a/blobs/{BLOB.digest}": lambda *_: (
            200 if any(key == "PUT /up" for key, *_ in server.asked) else 404,
            {},
            b"",
        ),
        "POST /v2/a/blobs/uploads/": (202, {"Location": "/up?_state=x%2By"}, b""),
        "PATCH /up": patches,
        "PUT /up": (201, {}, b""),
    }


def send(session, name):
    return send_blob(session, name, Blob(BLOB.digest, BLOB.size, Memory()), lambda _: None)


def bodies(server, method):
    return b"".join(body for key, _, body in server.asked if key == f"{method} /up")


def test_a_blob_is_sent_in_chunks(server, session, name, monkeypatch):
    monkeypatch.setattr("toolkit.run.registry.upload.CHUNK", 4096)
    upload_answers(server, (202, {"Location": "/up"}, b""))
    assert send(session, name)
    assert bodies(server, "PATCH") == CONTENT
    ranges = [headers["Content-Range"] for key, headers, _ in server.asked if key == "PATCH /up"]
    assert ranges == ["0-4095", "4096-8191", "8192-10239"]
    assert not send(session, name)


def test_a_registry_without_chunks_gets_it_whole(server, session, name):
    upload_answers(server, (405, {}, b""))
    assert send(session, name)
    assert bodies(server, "PUT") == CONTENT


def test_a_registry_that_never_takes_a_chunk_is_given_up(server, session, name):
    upload_answers(server, (500, {}, b""))
    with pytest.raises(Missing):
        send(session, name)
    assert len(server.asked) < 40


def test_an_upload_of_an_earlier_run_goes_on(server, session, name, monkeypatch):
    monkeypatch.setattr("toolkit.run.registry.upload.CHUNK", 4096)
    upload_answers(server, [(202, {"Location": "/up"}, b""), (403, {}, b"")])
    with pytest.raises(Missing):
        send(session, name)
    server.asked.clear()
    upload_answers(server, (202, {"Location": "/up"}, b""))
    server.answers["GET /up"] = (204, {"Location": "/up", "Range": "0-4095"}, b"")
    assert send(session, name)
    assert bodies(server, "PATCH") == CONTENT[4096:]


def test_a_registry_that_loses_what_it_took_is_told(server, session, name):
    upload_answers(server, (202, {"Location": "/up"}, b""))
    server.answers[f"HEAD /v2/a/blobs/{BLOB.digest}"] = (404, {}, b"")
    with pytest.raises(CheckFailed, match="does not have it afterwards"):
        send(session, name)


def test_headers_of_transfers():
    assert (
        received_bytes("0-99"),
        received_bytes("bytes=0-99"),
        received_bytes("0-0"),
        received_bytes("5-9"),
        received_bytes(""),
    ) == (
        100,
        100,
        0,
        0,
        0,
    )
    assert (begins_at(200, ""), begins_at(206, "bytes 5-9/10"), begins_at(206, "5-9")) == (0, 5, -1)
    assert with_digest("https://h/u?a=b%2Bc&d=", "sha256:1") == "https://h/u?a=b%2Bc&d=&digest=sha256%3A1"


def test_a_ca_that_is_none_is_named(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(BadInput, match=r"--ca: .*ca\.pem: contains no PEM certificate"):
        tls_settings(tmp_path / "ca.pem", "h")
    with pytest.raises(BadInput, match="no such file"):
        tls_settings(tmp_path / "absent", "h")
