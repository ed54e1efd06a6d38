"""Test successful and failed transfers of images to and from a real registry, which uses TLS and login."""

import io
import json
import os
import subprocess
import tarfile
import uuid

import pytest

from tests.services.program import interrupted_at, toolkit
from tests.services.registry import Gate, Registry
from tests.unit.image.sifs import sif
from toolkit.image.files.daemon import open_engine_image
from toolkit.model.progress import Silent
from toolkit.run.docker.builder import ensure_builder

MIB = 1 << 20


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    made = Registry(tmp_path_factory.mktemp("registry"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def person(registry, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(registry.log_in(tmp_path / "docker")))
    monkeypatch.setenv("SSL_CERT_FILE", str(registry.ca))
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return a SIF of 40 MB of random bytes, which cannot be compressed or started."""
    file = tmp_path_factory.mktemp("sif") / "small.sif"
    file.write_bytes(sif(os.urandom(40 * MIB)))
    return file


@pytest.fixture
def gate(registry, tmp_path):
    """Yield a proxy whose connection to the registry breaks, with a login for the proxy's address."""
    made = Gate(registry.port, 24 * MIB)
    known = json.loads((tmp_path / "docker" / "config.json").read_text())
    known["auths"][f"127.0.0.1:{made.port}"] = known["auths"][registry.host]
    (tmp_path / "docker" / "config.json").write_text(json.dumps(known))
    yield made
    made.close()


@pytest.fixture(scope="module")
def tiny(engine):
    name = f"toolkit-test-tiny:{uuid.uuid4().hex[:8]}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("noise")
        entry.size = 2 * MIB
        tar.addfile(entry, io.BytesIO(os.urandom(entry.size)))
    engine.api.import_image_from_data(packed.getvalue(), *name.split(":"), changes=['CMD ["/noise"]'])
    yield name
    engine.api.remove_image(name)


def pushed(image, target):
    return json.loads(toolkit("image", "push", str(image), target, "--json").stdout)


@pytest.fixture
def apptainer(engine, registry, tmp_path):
    builder = ensure_builder(engine, Silent())
    login = tmp_path / "docker" / "config.json"
    given = (
        f"{login}:/root/.apptainer/docker-config.json:ro",
        f"{registry.ca}:/ca.pem:ro",
        f"{tmp_path}:/out",
    )
    binds = [word for one in given for word in ("-v", one)]
    start = [
        "docker",
        "run",
        "--rm",
        "--memory",
        "2g",
        "--network",
        "host",
        *binds,
        "-e",
        "SSL_CERT_FILE=/ca.pem",
    ]

    def run(script):
        done = subprocess.run(
            [*start, builder, "sh", "-ec", script], timeout=300, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    return run


class TestASif:
    def test_apptainer_pulls_what_we_pushed_and_we_what_it_did(self, apptainer, registry, tmp_path):
        apptainer("mkdir -p /s/bin /s/etc; cp /bin/sh /s/bin; apptainer build -F /out/real.sif /s")
        real = tmp_path / "real.sif"
        name = f"oras://{registry.host}/ml/real:1"
        first, second = pushed(real, name), pushed(real, name)
        assert (first["form"], first["sent"], second["sent"]) == ("sif", 2, 0)
        apptainer(f"apptainer pull /out/theirs.sif {name}; apptainer push /out/theirs.sif {name}-back")
        assert (tmp_path / "theirs.sif").read_bytes() == real.read_bytes()
        ours = tmp_path / "ours.sif"
        toolkit("image", "pull", f"{name}-back", "-o", str(ours))
        assert ours.read_bytes() == real.read_bytes()
        subprocess.run(["sha256sum", "--check", "ours.sif.sha256"], cwd=tmp_path, check=True)
        assert "already has this image" in toolkit("image", "pull", name, "-o", str(ours)).stderr

    def test_an_interrupted_push_goes_on_where_it_was(self, registry, tmp_path):
        big = tmp_path / "big.sif"
        big.write_bytes(sif(os.urandom(120 * MIB)))
        name = f"oras://{registry.host}/ml/big:1"
        status, _ = interrupted_at("Sending", "image", "push", str(big), name)
        assert status == 130
        assert toolkit("image", "pull", name, "-o", str(tmp_path / "x"), ok=False).returncode == 3
        before = uploaded(registry)
        again = pushed(big, name)
        assert again["sent"] >= 1
        if before:  # the first download was interrupted inside the file, and the second must resume it
            assert uploaded(registry) == 0


class TestAnOrdinaryImage:
    def test_docker_pulls_what_we_pushed(self, engine, tiny, registry, tmp_path):
        plain = f"{registry.host}/base/debian:1"
        first = pushed(f"docker-daemon:{tiny}", f"docker://{plain}")
        assert first["sent"] == first["parts"] >= 2
        # The registry has the blobs in another repository, so toolkit uploads nothing.
        other = pushed(f"docker-daemon:{tiny}", f"docker://{registry.host}/other/debian:1")
        assert (other["sent"], other["digest"]) == (0, first["digest"])
        # The Docker engine does not verify certificates of a registry on this machine.
        done = subprocess.run(
            ["docker", "pull", plain], check=True, timeout=300, capture_output=True, text=True
        )
        try:
            assert first["digest"] in done.stdout
            assert engine.images.get(plain).id == engine.images.get(tiny).id
        finally:
            engine.api.remove_image(plain, noprune=True)

    def test_apptainer_converts_what_is_pulled(self, tiny, registry, apptainer, tmp_path):
        name = f"docker://{registry.host}/converted/debian:1"
        pushed(f"docker-daemon:{tiny}", name)
        toolkit("image", "pull", name, "-o", str(tmp_path / "it.tar"))
        apptainer("for form in oci docker; do apptainer build /out/$form.sif $form-archive:/out/it.tar; done")
        assert all((tmp_path / f"{form}.sif").stat().st_size > MIB for form in ("oci", "docker"))

    def test_what_is_pulled_is_loaded_by_docker_and_pushed_as_the_same_image(
        self, engine, tiny, registry, tmp_path
    ):
        name = f"docker://{registry.host}/again/debian:1"
        first = pushed(f"docker-daemon:{tiny}", name)
        archive = tmp_path / "it.tar"
        toolkit("image", "pull", name, "-o", str(archive))
        copied = pushed(f"oci-archive:{archive}", f"docker://{registry.host}/copied/debian:1")
        assert copied["digest"] == first["digest"]
        with archive.open("rb") as file:
            (loaded,) = engine.images.load(file)
        try:
            assert loaded.id == engine.images.get(tiny).id
        finally:
            engine.api.remove_image(f"{registry.host}/again/debian:1", noprune=True)


class TestTrouble:
    def test_a_wrong_password_and_no_login(self, registry, small, tmp_path, monkeypatch):
        name = f"oras://{registry.host}/ml/no:1"
        monkeypatch.setenv("DOCKER_CONFIG", str(registry.log_in(tmp_path / "wrong", "another")))
        done = toolkit("image", "push", str(small), name, ok=False)
        assert done.returncode == 3
        assert "does not accept the user and password" in done.stderr
        assert "another" not in done.stderr
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
        done = toolkit("image", "push", str(small), name, ok=False)
        assert done.returncode == 3
        assert f"docker login {registry.host}" in done.stderr

    def test_an_unknown_ca_and_one_that_is_named(self, registry, small, monkeypatch):
        monkeypatch.delenv("SSL_CERT_FILE")
        name = f"oras://{registry.host}/ml/ca:1"
        done = toolkit("image", "push", str(small), name, ok=False)
        assert done.returncode == 3
        assert "toolkit refuses the certificate" in done.stderr
        assert "--ca FILE" in done.stderr
        toolkit("image", "push", str(small), name, "--ca", str(registry.ca))

    def test_a_registry_that_goes_away_mid_push(self, registry, gate, small):
        name = f"oras://127.0.0.1:{gate.port}/ml/gone:1"
        done = toolkit("image", "push", str(small), name, ok=False)
        assert done.returncode == 3
        assert "cannot be reached" in done.stderr
        assert "resume the transfer" in done.stderr
        listed = registry.folder / "data/docker/registry/v2/repositories/ml/gone/_manifests"
        assert not listed.exists()
        gate.limit = 1 << 40
        assert pushed(small, name)["sent"] >= 1
        assert pushed(small, name)["sent"] == 0

    def test_a_registry_that_comes_back_in_time(self, registry, gate, small, tmp_path):
        name = f"oras://127.0.0.1:{gate.port}/ml/back:1"
        words = toolkit.words("image", "push", str(small), name)
        with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
            while gate.passed < gate.limit:
                assert process.poll() is None
            registry.stop()
            registry.start()
            gate.limit = 1 << 40
            assert process.wait(120) == 0
        toolkit("image", "pull", name, "-o", str(tmp_path / "back.sif"))
        assert (tmp_path / "back.sif").read_bytes() == small.read_bytes()

    def test_wrong_bytes_in_the_registry(self, registry, small, tmp_path):
        name = f"oras://{registry.host}/ml/rotten:1"
        digest = pushed(small, name)["digest"]
        manifest = json.loads(registry.blob(digest).read_text())
        blob = registry.blob(manifest["layers"][0]["digest"])
        kept = blob.read_bytes()
        blob.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        target = tmp_path / "old.sif"
        target.write_text("what was there")
        done = toolkit("image", "pull", name, "-o", str(target), ok=False)
        assert done.returncode == 1
        assert "differs from its digest" in done.stderr
        assert target.read_text() == "what was there"
        blob.write_bytes(kept)
        toolkit("image", "pull", name, "-o", str(target))
        assert target.read_bytes() == small.read_bytes()

    def test_a_full_disk(self, registry, small, tmp_path):
        name = f"oras://{registry.host}/ml/full:1"
        pushed(small, name)
        disk = tmp_path / "disk"
        disk.mkdir()
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        subprocess.run(
            [*root, "mount", "-t", "tmpfs", "-o", "size=24m,mode=1777", "tmpfs", str(disk)], check=True
        )
        try:
            done = toolkit("image", "pull", name, "-o", str(disk / "x.sif"), ok=False)
            assert done.returncode == 1
            assert "MB free" in done.stderr
            assert not (disk / "x.sif").exists()
            subprocess.run([*root, "mount", "-o", "remount,size=90m", str(disk)], check=True)
            toolkit("image", "pull", name, "-o", str(disk / "x.sif"))
            assert sorted(p.name for p in disk.iterdir()) == ["x.sif", "x.sif.sha256"]
        finally:
            subprocess.run([*root, "umount", str(disk)], check=True)

    def test_nobody_listens(self, small):
        done = toolkit("image", "push", str(small), "oras://127.0.0.1:9/a:1", ok=False)
        assert done.returncode == 3
        assert "no server listens there" in done.stderr


def test_a_registry_of_this_machine_without_tls(small, tmp_path):
    plain = Registry(tmp_path / "plain", tls=False)
    plain.start()
    try:
        assert pushed(small, f"oras://{plain.host}/a:1")["sent"] == 2
        toolkit("image", "pull", f"oras://{plain.host}/a:1", "-o", str(tmp_path / "a.sif"))
        assert (tmp_path / "a.sif").read_bytes() == small.read_bytes()
    finally:
        plain.stop()


def uploaded(registry):
    """Return the number of bytes of unfinished uploads in the registry."""
    root = registry.folder / "data/docker/registry/v2/repositories"
    return sum(file.stat().st_size for file in root.glob("ml/big/_uploads/*/data"))


def test_a_saved_archive_is_an_image_too(tiny, registry, tmp_path):
    saved = tmp_path / "saved.tar"
    with open_engine_image(tiny, Silent()) as file:
        file.seek(0)
        saved.write_bytes(file.read())
    name = f"docker://{registry.host}/saved/debian:1"
    again = f"docker://{registry.host}/saved/same:1"
    assert pushed(saved, name)["digest"] == pushed(f"docker-daemon:{tiny}", again)["digest"]
