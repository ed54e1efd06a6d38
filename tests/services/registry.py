"""Run a local image registry (Debian's docker-registry) with a login, and with TLS from a private CA."""

import base64
import contextlib
import datetime as dt
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import bcrypt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.services.program import ROOT
from tests.services.workers import one_at_a_time

USER, PASSWORD = "ada", "correct horse battery"


class Registry:
    def __init__(self, folder: Path, *, tls: bool = True, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.ca = folder / "ca.pem"
        self._process = None
        folder.mkdir(parents=True, exist_ok=True)
        make_certificates(folder)
        secret = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (folder / "htpasswd").write_text(f"{USER}:{secret}\n")
        config = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": self.host, "secret": "the same after a restart"},
        }
        if tls:
            certificate, key = str(folder / "server.pem"), str(folder / "server.key")
            config["http"]["tls"] = {"certificate": certificate, "key": key}
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        (folder / "config.yml").write_text(json.dumps(config))  # JSON is YAML

    def start(self) -> None:
        words = [program(), "serve", str(self.folder / "config.yml")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def log_in(self, folder: Path, password: str = PASSWORD) -> Path:
        """Write the file in which ``docker login`` stores a password. Return the file's folder, for
        DOCKER_CONFIG.
        """
        folder.mkdir(exist_ok=True)
        auth = base64.b64encode(f"{USER}:{password}".encode()).decode()
        (folder / "config.json").write_text(json.dumps({"auths": {self.host: {"auth": auth}}}))
        return folder

    def blob(self, digest: str) -> Path:
        name = digest.removeprefix("sha256:")
        return self.folder / "data/docker/registry/v2/blobs/sha256" / name[:2] / name / "data"


class Gate:
    """A proxy that closes the connection to the registry after it has forwarded ``limit`` bytes."""

    def __init__(self, port: int, limit: int) -> None:
        self._target, self.limit, self.passed = port, limit, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._open.append(near)
                if self.passed < self.limit:
                    threading.Thread(target=self._join, args=(near,), daemon=True).start()
                else:
                    near.close()

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        self._open.append(far)
        back = threading.Thread(target=self._pass, args=(far, near, False), daemon=True)
        back.start()
        self._pass(near, far, True)
        back.join()
        near.close()
        far.close()

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while (chunk := source.recv(1 << 16)) and self.passed < self.limit:
                target.sendall(chunk)
                self.passed += len(chunk) if counted else 0
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def program() -> str:
    """Return the path of docker-registry.

    Unpack its Debian package, because an installation would start the service.
    """
    if found := shutil.which("docker-registry"):
        return found
    folder = ROOT / "build" / "tests" / "docker-registry"
    found = folder / "usr" / "bin" / "docker-registry"
    with one_at_a_time("docker-registry"):
        if not found.exists():
            _unpack(folder)
    return str(found)


def _unpack(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    download = ["apt-get", "download", "docker-registry"]
    if subprocess.run(download, cwd=folder, timeout=120).returncode:
        # apt may have no package lists: they were removed, or apt-get update never ran.
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        subprocess.run([*root, "apt-get", "update", "-qq"], check=True, timeout=300)
        subprocess.run(download, cwd=folder, check=True, timeout=120)
    (package,) = folder.glob("docker-registry_*.deb")
    subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def make_certificates(folder: Path) -> None:
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a private CA")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)

    def certificate(subject, public, *extensions):
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(ca_name).public_key(public)
        made = made.serial_number(x509.random_serial_number()).not_valid_before(begin)
        made = made.not_valid_after(begin + dt.timedelta(days=2))
        for extension, critical in extensions:
            made = made.add_extension(extension, critical)
        return made.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    usage = x509.KeyUsage(*[True] + [False] * 4 + [True, True, False, False])
    identity = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    (folder / "ca.pem").write_bytes(
        certificate(
            ca_name,
            ca_key.public_key(),
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (usage, True),
            (identity, False),
        )
    )
    (folder / "server.pem").write_bytes(
        certificate(
            name,
            key.public_key(),
            (x509.SubjectAlternativeName(names), False),
            (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identity), False),
        )
    )
    plain = serialization.NoEncryption()
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "server.key").write_bytes(key.private_bytes(pem, form, plain))
