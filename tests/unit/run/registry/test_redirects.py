"""Test which redirects of a registry or a file server toolkit follows."""

import datetime
import ipaddress
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.unit.run.registry.hostile import Server
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.download import fetch_blob
from toolkit.run.registry.images import fetch_manifest
from toolkit.run.registry.manifest import Descriptor, digest_of
from toolkit.run.registry.name import parse_name
from toolkit.run.registry.session import RegistryAccess, RegistrySession, open_session
from toolkit.run.web import http

MANIFEST = b'{"schemaVersion": 2}'
CONTENT = b"content"
BLOB = Descriptor("x", digest_of(CONTENT), len(CONTENT))
WHERE = {"manifest": "/v2/a/manifests/1", "blob": f"/v2/a/blobs/{BLOB.digest}"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


@pytest.fixture
def safe(certificate):
    made = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    made._http.socket = context.wrap_socket(made._http.socket, server_side=True)
    yield made
    made.close()


def sent_to(url, status=307):
    return (status, {"Location": url}, b"")


def fetched(session, name, what, folder):
    if what == "manifest":
        return fetch_manifest(session, name, "1")
    return fetch_blob(session, name, BLOB, folder / "part", lambda _: None)


@every_row("status", [301, 302, 303, 307, 308])
@every_row("what", ["manifest", "blob"])
def test_no_redirect_leads_from_tls_to_plain_http(safe, server, certificate, tmp_path, what, status):
    safe.answers[f"GET {WHERE[what]}"] = sent_to(f"http://{server.host}/x", status)
    server.answers["GET /x"] = (200, {}, MANIFEST if what == "manifest" else CONTENT)
    name = parse_name(f"docker://{safe.host}/a:1")
    with (
        open_session(name, RegistryAccess(ca=certificate)) as session,
        pytest.raises(CheckFailed, match="not protected by TLS") as caught,
    ):
        fetched(session, name, what, tmp_path)
    assert safe.host in caught.value.message
    assert server.host in caught.value.message
    assert server.asked == []


def test_a_second_redirect_does_not_lead_from_tls_to_plain_http_either(safe, server, certificate, tmp_path):
    """A registry over plain HTTP may redirect to TLS, but never back to plain HTTP."""
    server.answers[f"GET {WHERE['manifest']}"] = sent_to(f"https://{safe.host}/x")
    server.answers["GET /y"] = (200, {}, MANIFEST)
    safe.answers["GET /x"] = sent_to(f"http://{server.host}/y")
    name = parse_name(f"docker://{server.host}/a:1")
    access = RegistryAccess(ca=certificate, plain_http=True)
    with open_session(name, access) as session, pytest.raises(CheckFailed, match="not protected by TLS"):
        fetch_manifest(session, name, "1")


def test_files_are_not_followed_from_tls_to_plain_http_either(safe, server, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    safe.answers["GET /x"] = sent_to(f"http://{server.host}/x", 302)
    server.answers["GET /x"] = (200, {}, CONTENT)
    with (
        pytest.raises(Missing, match="not protected by TLS"),
        http.open_address(f"https://{safe.host}/x") as body,
    ):
        body.read()
    assert server.asked == []


@every_row("what", ["manifest", "blob"])
def test_a_redirect_over_tls_or_of_a_plain_registry_is_followed(safe, server, certificate, tmp_path, what):
    for here, access in ((safe, RegistryAccess(ca=certificate)), (server, RegistryAccess(plain_http=True))):
        scheme = "https" if here is safe else "http"
        here.answers[f"GET {WHERE[what]}"] = sent_to(f"{scheme}://{here.host}/x")
        here.answers["GET /x"] = (200, {}, MANIFEST if what == "manifest" else CONTENT)
        name = parse_name(f"docker://{here.host}/a:1")
        with open_session(name, access) as session:
            fetched(session, name, what, tmp_path)
        (tmp_path / "part").unlink(missing_ok=True)


@every_row(("target", "said"), [("/v2/a/manifests/1", "in a circle"), ("/1", "more than 10 times")])
def test_a_chain_of_redirects_ends_at_once(server, target, said):
    server.answers[f"GET {WHERE['manifest']}"] = sent_to(target)
    server.answers |= {f"GET /{number}": sent_to(f"/{number + 1}") for number in range(1, 40)}
    name = parse_name(f"docker://{server.host}/a:1")
    began = time.monotonic()
    with (
        open_session(name, RegistryAccess(plain_http=True)) as session,
        pytest.raises((CheckFailed, Missing), match=said),
    ):
        fetch_manifest(session, name, "1")
    assert time.monotonic() - began < 3  # 0.05 s on an idle machine; with retries 16 s
    assert len(server.asked) < 15


@every_row("target", ["file:///etc/passwd", "ftp://h/x", "https://[", "https:///x"])
def test_a_redirect_to_what_is_no_address_is_refused(server, target):
    server.answers[f"GET {WHERE['manifest']}"] = sent_to(target)
    name = parse_name(f"docker://{server.host}/a:1")
    with (
        open_session(name, RegistryAccess(plain_http=True)) as session,
        pytest.raises(CheckFailed, match="redirects to"),
    ):
        fetch_manifest(session, name, "1")


def test_a_host_that_we_are_sent_to_does_not_choose_where_our_password_goes(server, home):
    (home / "docker").mkdir()
    (home / "docker" / "config.json").write_text(f'{{"auths": {{"{server.host}": {{"auth": "YTpi"}}}}}}')
    other = Server()
    try:
        challenge = f'Bearer realm="http://{other.host}/token"'
        other.answers["GET /x"] = (401, {"WWW-Authenticate": challenge}, b"")
        other.answers["GET /token"] = (200, {}, b'{"token": "t"}')
        server.answers[f"GET {WHERE['manifest']}"] = sent_to(f"http://{other.host}/x")
        name = parse_name(f"docker://{server.host}/a:1")
        session = RegistrySession(name, RegistryAccess(plain_http=True))
        with pytest.raises((CheckFailed, Missing)):
            fetch_manifest(session, name, "1")
        session.close()
        assert not any("Authorization" in headers for _, headers, _ in other.asked)
        assert [key for key, *_ in other.asked] == ["GET /x"]
    finally:
        other.close()


def test_an_upload_is_sent_on_with_its_body_where_a_redirect_keeps_the_method(server, session_of):
    server.answers["PUT /up"] = sent_to("/there")
    server.answers["PUT /there"] = (201, {}, b"")
    session_of.ask("PUT", "/up", statuses=(201,), data=CONTENT).close()
    assert server.asked[-1][2] == CONTENT
    server.answers["PUT /up"] = sent_to("/there", 302)
    with pytest.raises(CheckFailed, match="answers with HTTP status 302"):
        session_of.ask("PUT", "/up", statuses=(201,), data=CONTENT)


@pytest.fixture
def session_of(server):
    made = RegistrySession(parse_name(f"docker://{server.host}/a:1"), RegistryAccess(plain_http=True))
    yield made
    made.close()
