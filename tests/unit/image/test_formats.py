"""Test that an image has the same facts in every format, and that toolkit refuses damaged images."""

import gzip
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from tests.unit.image.archives import CONFIG, PACK, docker_archive, named, oci_layout, tar, written
from tests.unit.image.sifs import DATA, sandbox, sif, squashfs
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4
from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.image.files.oci import this_platform
from toolkit.image.inspect import inspect
from toolkit.model.facts import ImageFacts

# Apptainer writes these files into an image that it builds from another image.
APPTAINER = {
    "/.singularity.d/env/10-docker2singularity.sh": "#!/bin/sh\n"
    'export PATH="/opt/mpi/bin:/usr/bin"\nexport OMPI_MCA_pml="${OMPI_MCA_pml:-"ob1"}"\n',
    "/.singularity.d/labels.json": json.dumps(CONFIG["Labels"]),
    "/.singularity.d/runscript": '#!/bin/sh\nOCI_ENTRYPOINT=\'"/usr/bin/env"\'\nOCI_CMD=\'"python3" "-V"\'\n',
}
PROCESS = {"Entrypoint": ["/usr/bin/env"], "Cmd": ["python3", "-V"]}
FILES = {**BASE, **OPEN_MPI_4, "/opt/old/lib/libmpi.so.12": b"of a lower layer"}
GONE = {"opt/.wh.old": ""}


def layers() -> list[bytes]:
    """Return the files in three layers; the last layer removes a folder that toolkit must not find."""
    names = list(FILES)
    lower = {n.lstrip("/"): FILES[n] for n in names if names.index(n) % 2}
    upper = {n.lstrip("/"): FILES[n] for n in names if names.index(n) % 2 == 0}
    return [tar(lower), tar(upper), tar(GONE)]


def plain(**more) -> dict[str, bytes | str]:
    return {n: c for n, c in FILES.items() if not n.startswith("/opt/old")} | APPTAINER | more


def without_links(files: dict) -> dict[str, bytes]:
    """Return the files with each link replaced by a copy, because the squashfs of this test has no links."""
    copied = {}
    for name, content in files.items():
        if isinstance(content, str) and content.startswith("->"):
            copied[name] = files.get(str(Path(name).parent / content[2:]))
        else:
            copied[name] = content.encode() if isinstance(content, str) else content
    return {
        name: content for name, content in copied.items() if content is not None
    }  # without links to folders


def same(facts: ImageFacts) -> dict:
    """Return the facts that must not differ between formats."""
    told = msgspec.to_builtins(facts)
    # These facts differ between formats. For example, Docker and OCI images have no `driver_searched`.
    for name in ("path", "format", "digest", "compression", "driver_searched"):
        told.pop(name)
    for book in ("evidence", "absent", "unknown"):
        # The evidence differs, because it names a header, a configuration or a file.
        told[book] = {
            k: v
            for k, v in told[book].items()
            if k not in {"digest", "architecture", "entrypoint", "compression"}
        }
    return told


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("forms")
    made = {"sandbox": sandbox(root / "sandbox", plain())}
    for pack in PACK:
        layout = oci_layout(layers(), pack=pack, **PROCESS)
        made[f"oci-layout {pack}"] = written(root / f"layout{pack}", layout)
        made[f"oci-archive {pack}"] = root / f"oci{pack}.tar"
        made[f"oci-archive {pack}"].write_bytes(tar(layout))
        made[f"docker-archive {pack}"] = root / f"docker{pack}.tar"
        made[f"docker-archive {pack}"].write_bytes(PACK[pack](tar(docker_archive(layers(), **PROCESS))))
    # Docker 25 and newer save an image with manifest.json and index.json.
    both = oci_layout(layers(), **PROCESS)
    manifest = json.loads(
        both[f"blobs/sha256/{json.loads(both['index.json'])['manifests'][0]['digest'][7:]}"]
    )
    paths = [f"blobs/sha256/{layer['digest'][7:]}" for layer in manifest["layers"]]
    about = f"blobs/sha256/{manifest['config']['digest'][7:]}"
    both["manifest.json"] = json.dumps([{"Config": about, "RepoTags": None, "Layers": paths}]).encode()
    made["docker-archive both"] = root / "both.tar"
    made["docker-archive both"].write_bytes(tar(both))
    return made


KINDS = [f"{form} {pack}" for form in ("oci-layout", "oci-archive", "docker-archive") for pack in PACK]


@every_row("kind", [*KINDS, "docker-archive both"])
def test_equal_content_gives_equal_facts(forms, kind):
    expected, facts = inspect(forms["sandbox"]), inspect(forms[kind])
    assert facts.format == kind.split()[0]
    assert same(facts) == same(expected)
    assert facts.mpi is not None
    assert (facts.mpi.version, facts.entrypoint) == ("4.1.4", ("/usr/bin/env", "python3", "-V"))
    assert facts.environment == {"PATH": "/opt/mpi/bin:/usr/bin", "OMPI_MCA_pml": "ob1"}
    assert facts.labels == {"title": "x"}
    assert facts.architecture == "x86_64"


def test_a_squashfs_and_a_sif_give_the_facts_of_a_sandbox(tmp_path):
    files = without_links(plain())
    expected = inspect(sandbox(tmp_path / "sandbox", files))
    (tmp_path / "x.squashfs").write_bytes(squashfs(files))
    (tmp_path / "x.sif").write_bytes(sif(squashfs(files)))
    for name in ("x.squashfs", "x.sif"):
        facts = inspect(tmp_path / name)
        assert facts.format == name.rpartition(".")[2]
        assert same(facts) == same(expected)


def test_the_compression_of_a_squashfs_is_told_and_nothing_else_has_one(forms, tmp_path):
    for kind in ("gzip", "xz", "lz4", "zstd"):
        facts = inspect(DATA / f"tiny.{kind}")
        assert facts.compression == kind
        assert facts.cite("compression") == f"the superblock of its squashfs: {kind}"
    (tmp_path / "x.sif").write_bytes(sif((DATA / "tiny.xz").read_bytes()))
    assert inspect(tmp_path / "x.sif").compression == "xz"
    facts = inspect(forms["oci-layout "])
    assert facts.compression is None
    assert facts.cite("compression") == "oci-layout: not a squashfs, so the kernel cannot mount it"


def test_the_digest_is_that_of_the_manifest_or_the_configuration(forms):
    layout = oci_layout(layers(), **PROCESS)
    assert inspect(forms["oci-archive "]).digest == json.loads(layout["index.json"])["manifests"][0]["digest"]
    about = next(data for name, data in docker_archive(layers(), **PROCESS).items() if len(name) == 69)
    assert inspect(forms["docker-archive gzip"]).digest == f"sha256:{named(about)}"


def test_transports_are_written_as_apptainer_writes_them(forms):
    for text, form in (
        (f"oci:{forms['oci-layout ']}", "oci-layout"),
        (f"oci:{forms['oci-layout ']}:1", "oci-layout"),
        (f"oci://{forms['oci-layout ']}", "oci-layout"),
        (f"oci-archive:{forms['oci-archive gzip']}:1", "oci-archive"),
        (f"oci-archive:{forms['docker-archive both']}", "oci-archive"),
        (f"docker-archive:{forms['docker-archive zstd']}", "docker-archive"),
        (f"docker-archive:{forms['docker-archive zstd']}:a:1", "docker-archive"),
        (str(forms["docker-archive "]), "docker-archive"),
    ):
        facts = inspect(text)
        assert (facts.format, facts.path) == (form, text)


@every_row(
    ("transport", "kind", "why"),
    [
        ("docker-archive", "oci-archive ", "not an archive of `docker save"),
        ("oci-archive", "docker-archive ", "not an OCI layout: index.json is missing"),
        ("oci", "oci-archive ", "a file, but oci: needs a folder"),
        ("oci-archive", "oci-layout ", "this is a folder, but oci-archive needs a file"),
        ("oci", "sandbox", "index.json is missing"),
    ],
)
def test_a_transport_that_does_not_fit_is_refused(forms, transport, kind, why):
    with pytest.raises(BadInput, match=why):
        inspect(f"{transport}:{forms[kind]}")


def test_of_several_images_one_is_named(tmp_path):
    one, two = docker_archive(layers(), "a:1"), docker_archive(layers()[:2], "b/c:2")
    listed = json.loads(one["manifest.json"]) + json.loads(two["manifest.json"])
    file = tmp_path / "two.tar"
    file.write_bytes(tar({**one, **two, "manifest.json": json.dumps(listed).encode()}))
    with pytest.raises(BadInput, match="the archive contains several images: a:1, b/c:2"):
        inspect(file)
    with pytest.raises(BadInput, match="image 'c:9' not found; choices: a:1, b/c:2"):
        inspect(f"docker-archive:{file}:c:9")
    found = inspect(f"docker-archive:{file}:b/c:2"), inspect(f"docker-archive:{file}:a:1")
    assert found[0].digest != found[1].digest


def _several(tmp_path, *platforms: str, tags: tuple[str, ...] = ()) -> Path:
    """Write a layout with nested indexes and an image for each platform; return its path."""
    listed, all_files = [], {}
    for number, text in enumerate(platforms):
        system, architecture = text.split("/")
        files = oci_layout([tar({**FILES, "etc/number": str(number)})], "")
        (found,) = json.loads(files["index.json"])["manifests"]
        found["platform"] = {"os": system, "architecture": architecture}
        if tags:
            found["annotations"] = {"org.opencontainers.image.ref.name": tags[number]}
        listed.append(found)
        all_files |= files
    inner = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
    all_files[f"blobs/sha256/{named(inner)}"] = inner
    kind = "application/vnd.oci.image.index.v1+json"
    top = {"mediaType": kind, "digest": f"sha256:{named(inner)}", "size": len(inner)}
    all_files["index.json"] = json.dumps({"manifests": [top]}).encode()
    return written(tmp_path / "layout", all_files)


def test_of_several_platforms_this_machines_is_taken_or_the_one_that_is_asked_for(tmp_path, monkeypatch):
    layout = _several(tmp_path, "linux/amd64", "linux/arm64", "unknown/unknown")
    manifests = json.loads(next(iter(_index(layout))))["manifests"]
    monkeypatch.setattr("toolkit.image.files.oci.platform.machine", lambda: "x86_64")
    assert inspect(layout).digest == manifests[0]["digest"]
    monkeypatch.setattr("toolkit.image.files.oci.platform.machine", lambda: "riscv64")
    assert this_platform() == "linux/riscv64"
    with pytest.raises(BadInput, match="no image for linux/riscv64; its platforms: linux/amd64, linux/arm64"):
        inspect(layout)
    assert inspect(layout, platform="linux/amd64").digest == manifests[0]["digest"]
    # The configuration of each test image names amd64.
    with pytest.raises(BadInput, match=r"--platform linux/arm64: .* is an image for x86_64"):
        inspect(layout, platform="linux/arm64")


def _index(layout: Path):
    top = json.loads((layout / "index.json").read_bytes())["manifests"][0]["digest"]
    yield (layout / "blobs" / top.replace(":", "/")).read_bytes()


def test_images_without_a_platform_are_not_guessed_from(tmp_path):
    layout = _several(tmp_path, "linux/amd64", "linux/amd64")
    manifests = json.loads(next(_index(layout)))["manifests"]
    for manifest in manifests:
        del manifest["platform"]
    (layout / "index.json").write_text(json.dumps({"manifests": manifests}))
    with pytest.raises(BadInput, match=r"several images that may be for linux/.*; its platforms: unknown"):
        inspect(layout)


def test_of_several_names_one_is_named(tmp_path):
    layout = _several(tmp_path, "linux/amd64", "linux/amd64", tags=("one", "docker.io/x:two"))
    with pytest.raises(BadInput, match=r"the layout contains several images: docker\.io/x:two, one"):
        inspect(layout)
    with pytest.raises(BadInput, match="image 'three' not found"):
        inspect(f"oci:{layout}:three")
    one, two = inspect(f"oci:{layout}:one"), inspect(f"oci:{layout}:two")
    assert one.digest != two.digest
    assert inspect(f"oci:{layout}:{two.digest}").digest == two.digest


def test_a_platform_is_held_against_an_image_that_has_but_one(forms):
    assert inspect(forms["docker-archive "], platform="linux/amd64")
    with pytest.raises(BadInput, match="--platform linux/arm64"):
        inspect(forms["docker-archive "], platform="linux/arm64")
    with pytest.raises(BadInput, match="no image for linux/s390x"):
        inspect(_several(forms["sandbox"].parent / "s", "linux/amd64"), platform="linux/s390x")


BLOBS = [name for name in oci_layout(layers()) if name.startswith("blobs/")]


@every_row("pack", sorted(PACK))
@every_row("number", range(5))
def test_a_flipped_byte_in_any_blob_is_found(tmp_path, pack, number):
    layout = oci_layout(layers(), pack=pack)
    name = [n for n in layout if n.startswith("blobs/")][number]
    damaged = bytearray(layout[name])
    damaged[-1] ^= 1
    for kind, image in (
        ("folder", written(tmp_path / "layout", {**layout, name: bytes(damaged)})),
        ("archive", tmp_path / "x.tar"),
    ):
        if kind == "archive":
            image.write_bytes(tar({**layout, name: bytes(damaged)}))
        with pytest.raises(CheckFailed, match=r"not match its digest in the image|damaged"):
            inspect(image)


def test_a_flipped_byte_in_a_layer_of_docker_save_is_found(tmp_path):
    files = docker_archive(layers())
    damaged = bytearray(files[next(iter(files))])
    damaged[-1] ^= 1
    (tmp_path / "x.tar").write_bytes(tar({**files, next(iter(files)): bytes(damaged)}))
    with pytest.raises(CheckFailed, match="layer 1 of 3: its content does not match its digest in the image"):
        inspect(tmp_path / "x.tar")


def _without(files, *names):
    return {n: d for n, d in files.items() if not any(n.startswith(x) for x in names)}


def _with_manifest(**changes):
    files = docker_archive(layers())
    listed = json.loads(files["manifest.json"])
    listed[0] |= changes
    return {**files, "manifest.json": json.dumps(listed).encode()}


@every_row(
    ("files", "error", "why"),
    [
        (
            _without(docker_archive(layers()), "manifest.json"),
            BadInput,
            "neither manifest.json nor index.json",
        ),
        ({**docker_archive(layers()), "manifest.json": b"{"}, CheckFailed, "manifest.json: cannot be read"),
        ({**docker_archive(layers()), "manifest.json": b"[]"}, BadInput, "the archive contains no image"),
        ({**docker_archive(layers()), "manifest.json": b"[" * 100_000}, CheckFailed, "cannot be read"),
        (
            {**docker_archive(layers()), "manifest.json": bytes(5 << 20)},
            CheckFailed,
            "has 5242880 bytes; toolkit accepts at most 4194304",
        ),
        (_with_manifest(Config="nothing.json"), CheckFailed, "configuration 'nothing.json' is missing"),
        (_with_manifest(Layers=["../../etc/passwd"] * 3), CheckFailed, "/etc/passwd is missing"),
        (_with_manifest(Layers=["x"] * 600), CheckFailed, "600 layers; toolkit reads at most 500"),
        (_with_manifest(Layers=[]), CheckFailed, "0 layers, but its configuration names 3"),
        (_without(docker_archive(layers()), named(layers()[1])), CheckFailed, "layer.tar is missing"),
        ({"oci-layout": b"{}", "index.json": b'{"manifests": []}'}, BadInput, "the layout contains no image"),
        ({"oci-layout": b"{}", "index.json": b"[]"}, CheckFailed, "index.json: cannot be read"),
        (
            {"index.json": b'{"manifests": [{"digest": "../../etc/passwd", "size": 1}]}'},
            CheckFailed,
            "'../../etc/passwd' is not a digest",
        ),
        (_without(oci_layout(layers()), BLOBS[0]), CheckFailed, "blobs/sha256/.* is missing"),
        (_without(oci_layout(layers()), BLOBS[-1]), CheckFailed, "blobs/sha256/.* is missing"),
    ],
)
def test_an_archive_that_is_not_whole_is_refused(tmp_path, files, error, why):
    (tmp_path / "x.tar").write_bytes(tar(files))
    with pytest.raises(error, match=why) as caught:
        inspect(tmp_path / "x.tar")
    assert "\n" not in caught.value.message


def test_what_is_no_image_for_linux_says_so(tmp_path):
    about = json.dumps({"os": "windows", "architecture": "amd64"}).encode()
    files = {"c.json": about, "manifest.json": b'[{"Config": "c.json", "Layers": []}]'}
    (tmp_path / "x.tar").write_bytes(tar(files))
    with pytest.raises(BadInput, match="an image for 'windows'"):
        inspect(tmp_path / "x.tar")


def test_encrypted_layers_are_named(tmp_path):
    files = oci_layout(layers())
    index = json.loads(files["index.json"])
    name = f"blobs/sha256/{index['manifests'][0]['digest'][7:]}"
    changed = files.pop(name).replace(b"layer.v1.tar", b"layer.v1.tar+encrypted")
    files[f"blobs/sha256/{named(changed)}"] = changed
    index["manifests"][0] |= {"digest": f"sha256:{named(changed)}", "size": len(changed)}
    files["index.json"] = json.dumps(index).encode()
    with pytest.raises(BadInput, match="its layers are encrypted"):
        inspect(written(tmp_path / "layout", files))


def test_indexes_that_lead_to_no_end_are_given_up(tmp_path):
    inner, files = b'{"manifests": []}', {}
    for _ in range(12):
        files[f"blobs/sha256/{named(inner)}"] = inner
        inner = json.dumps({"manifests": [{"digest": f"sha256:{named(inner)}", "size": 1}]}).encode()
    layout = written(tmp_path / "layout", {**files, "oci-layout": b"{}", "index.json": inner})
    with pytest.raises(CheckFailed, match="the layout's indexes form a loop"):
        inspect(layout)


@every_row("share", [0.05, 0.3, 0.7])
@every_row("kind", KINDS[3:])
def test_an_archive_that_is_cut_short_is_refused(forms, tmp_path, kind, share):
    whole = forms[kind].read_bytes()
    (tmp_path / "cut").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CheckFailed, match=r"incomplete|is missing") as caught:
        inspect(tmp_path / "cut")
    assert "\n" not in caught.value.message


def test_a_checksum_beside_an_archive_is_compared(forms, tmp_path):
    file = tmp_path / "x.tar"
    file.write_bytes(forms["docker-archive "].read_bytes())
    beside = tmp_path / "x.tar.sha256"
    beside.write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  x.tar\n")
    assert inspect(file)
    beside.write_text(f"{'0' * 64}  x.tar\n")
    with pytest.raises(CheckFailed, match="its content has changed"):
        inspect(file)


def test_a_file_that_is_no_archive_behind_a_transport(tmp_path):
    (tmp_path / "x").write_bytes(b"text" * 1000)
    with pytest.raises(CheckFailed, match="damaged"):
        inspect(f"docker-archive:{tmp_path / 'x'}")
    (tmp_path / "y").write_bytes(gzip.compress(b"text" * 1000))
    with pytest.raises(CheckFailed, match="damaged"):
        inspect(tmp_path / "y")


def test_a_pipe_in_the_place_of_a_blob_does_not_hold_us_up(tmp_path):
    import os

    layout = written(tmp_path / "layout", oci_layout(layers()))
    (layout / BLOBS[0]).unlink()
    os.mkfifo(layout / BLOBS[0])
    with pytest.raises(CheckFailed, match="is missing"):
        inspect(layout)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="a FIFO, not a regular file"):
        inspect(tmp_path / "pipe")


def test_nothing_is_written_beside_an_image(forms):
    root = forms["sandbox"].parent
    before = {p: p.lstat().st_mtime_ns for p in root.rglob("*")}
    for kind in KINDS:
        inspect(forms[kind])
    assert {p: p.lstat().st_mtime_ns for p in root.rglob("*")} == before
