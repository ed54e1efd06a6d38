"""Test that a malicious registry can use only limited memory and time of toolkit."""

import contextlib
import gzip
import json
import tracemalloc

import pytest

from tests.unit.run.registry.raw import BLOCK, Raw, endless, finite, slow
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.download import fetch_blob
from toolkit.run.registry.images import fetch_manifest
from toolkit.run.registry.manifest import Descriptor, digest_of
from toolkit.run.registry.name import parse_name
from toolkit.run.registry.session import RegistryAccess, RegistrySession, open_session
from toolkit.run.registry.upload import Blob, send_blob
from toolkit.run.web.limits import Limits

WHERE = "GET /v2/a/manifests/1"
MOST_MEMORY = 64 << 20
CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ZEROS = gzip.compress(bytes(64 << 20), 6)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def serve():
    made = []

    def start(**answers):
        made.append(Raw({key.replace("_", " "): value for key, value in answers.items()}))
        return made[-1]

    yield start
    for server in made:
        server.close()


def told(server, action=lambda session, name: fetch_manifest(session, name, "1")):
    """Return the error message of an action on a registry; check the peak memory of the action."""
    name = parse_name(f"docker://{server.host}/a:1")
    tracemalloc.start()
    try:
        with (
            pytest.raises((CheckFailed, Missing)) as caught,
            open_session(name, RegistryAccess(plain_http=True, pause=lambda _: None)) as session,
        ):
            action(session, name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY, f"{peak >> 20} MiB"
    return caught.value.message


@every_row(
    ("answer", "message"),
    [
        (endless("HTTP/1.1 418 No\r\nContent-Length: 6500000000\r\n\r\n"), "answers with HTTP status 418"),
        (endless("HTTP/1.1 418 No\r\n\r\n"), "answers with HTTP status 418"),
        (endless("HTTP/1.1 200 OK\r\n\r\n"), "its manifest is larger than 4 MiB"),
        (
            endless(
                f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(ZEROS)}\r\n\r\n", ZEROS
            ),
            "its manifest is larger than 4 MiB",
        ),
        (endless("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n"), "its answer cannot be decompressed"),
        (endless("HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 60_000 + b"\r\n"), "cannot be reached"),
        (endless("HTTP/1.1 200 OK\r\nX-A: "), "cannot be reached"),
        (endless(f"{CHUNKED}1;"), "cannot be reached"),
        (
            endless(f"{CHUNKED}1\r\n1\r\n0\r\n", b"X-A: " + b"a" * 60_000 + b"\r\n"),
            "the server sends more than 16 MiB",
        ),
        (
            endless("", b"HTTP/1.1 100 Continue\r\nX-A: " + b"a" * 60_000 + b"\r\n\r\n"),
            "the server sends more than 16 MiB",
        ),
        (endless("HTTP/1.1 307 There\r\nLocation: /x\r\n\r\n"), "answers with HTTP status 418"),
    ],
    ids=[
        "error",
        "error-no-length",
        "manifest",
        "gzip",
        "brotli",
        "headers",
        "header",
        "chunk-size",
        "trailers",
        "100",
        "307",
    ],
)
def test_an_endless_answer_is_given_up_within_its_memory(serve, answer, message):
    server = serve(**{WHERE: answer, "GET /x": endless("HTTP/1.1 418 No\r\n\r\n")})
    assert message in told(server)
    assert server.sent < 150_000_000


def test_a_token_that_never_ends_is_refused_within_its_memory(serve):
    server = serve(**{"GET /token": endless("HTTP/1.1 200 OK\r\n\r\n")})
    challenge = f'WWW-Authenticate: Bearer realm="http://{server.host}/token"\r\n'
    server.answers[WHERE] = lambda: iter([finite("401 No", more=challenge)])
    assert "its token server sends more than 1 MiB" in told(server)


@every_row("part", ["annotations", "layers", "manifests", "other"])
def test_a_manifest_of_many_small_things_stays_within_its_memory(serve, part):
    small = {"mediaType": "", "digest": "", "size": 0}
    notes = {f"{number:x}": "" for number in range(300_000)}
    values = {
        "annotations": {"config": small | {"annotations": notes}},
        "layers": {"layers": [small] * 100_000},
        "manifests": {"manifests": [small | {"annotations": {"a": "b"}}] * 65_000},
        "other": {"other": notes},
    }
    text = json.dumps({"schemaVersion": 2} | values[part], separators=(",", ":")).encode()
    assert 3 << 20 < len(text) < 4 << 20
    server = serve(**{WHERE: lambda: iter([finite("200 OK", text)])})

    def read(session, name):
        fetch_manifest(session, name, "1")
        raise CheckFailed("read")

    told(server, read)


class Memory:
    """A fake blob of 1 GiB that occupies no memory; ``most`` is the size of the largest read."""

    def __init__(self):
        self.most = 0

    def read_at(self, offset, count):
        self.most = max(self.most, count)
        raise CheckFailed("read")


def test_a_registry_that_wants_large_chunks_gets_the_blob_in_one_stream(server):
    source = Memory()
    server.answers["POST /v2/a/blobs/uploads/"] = (
        202, {"Location": "/up", "OCI-Chunk-Min-Length": str(1 << 30)}, b""
    )  # fmt: skip
    name = parse_name(f"docker://{server.host}/a:1")
    session = RegistrySession(name, RegistryAccess(plain_http=True))
    with pytest.raises(CheckFailed, match="read"), contextlib.closing(session):
        send_blob(session, name, Blob(digest_of(b""), 1 << 30, source), lambda _: None)
    assert source.most <= 32 << 20


@pytest.fixture
def hurried(monkeypatch):
    """Set the time limits to 0.2 s instead of a minute."""
    for module in ("session", "tokens"):
        monkeypatch.setattr(f"toolkit.run.registry.{module}.Limits", lambda: Limits(0.2, 0.2))
    monkeypatch.setattr("toolkit.run.web.limits.WINDOW", 0.2)


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("hurried")
@every_row(
    ("head", "message"),
    [
        ("", "the server's answer is not complete after 0.2 seconds"),
        ("HTTP/1.1 200 OK\r\nX-A: ", "the server's answer is not complete after 0.2 seconds"),
        ("HTTP/1.1 200 OK\r\n\r\n", "the server's answer is not complete after 0.2 seconds"),
        (f"{CHUNKED}1;", "the server's answer is not complete after 0.2 seconds"),
        ("HTTP/1.1 418 No\r\n\r\n", "answers with HTTP status 418"),
    ],
    ids=["status", "header", "manifest", "chunk", "error"],
)
def test_an_answer_that_comes_a_byte_at_a_time_is_given_up_after_its_limit(serve, monkeypatch, head, message):
    server = serve(**{WHERE: slow(head)})
    # A busy machine may need more than 0.2 s for the first request, GET /v2/.
    monkeypatch.setattr(
        "toolkit.run.registry.session.Limits",
        lambda: Limits(0.2, 0.2) if server.asked else Limits(20, 20),
    )
    assert message in told(server)
    assert server.asked.count(WHERE) == 1


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("hurried")
def test_a_blob_that_comes_too_slowly_is_retried_and_then_given_up(serve, tmp_path, monkeypatch):
    # The time limits of the other requests do not matter here, and a busy machine could exceed 0.2 s.
    monkeypatch.setattr("toolkit.run.registry.session.Limits", lambda: Limits(20, 20))
    blob = Descriptor("x", digest_of(b""), 10_000_000)
    where = f"GET /v2/a/blobs/{blob.digest}"
    server = serve(**{where: slow("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + "x" * 70_000)})
    message = told(
        server, lambda session, name: fetch_blob(session, name, blob, tmp_path / "part", lambda _: None)
    )
    assert "the server sends less than 1024 bytes a second" in message
    assert server.asked.count(where) == 6
    assert (tmp_path / "part").stat().st_size >= len(BLOCK)
