"""Make small valid images of every format and valid facts files, which the fuzz test then damages."""

import json
import random
from functools import cache
from pathlib import Path

import msgspec

from tests.unit.image.archives import PACK, config, docker_archive, named, oci_layout, tar
from tests.unit.image.sifs import DATA, elf, sif, squashfs
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4
from toolkit.image.inspect import inspect
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.probe.probe import load

EVIDENCE = Path(__file__).parents[1] / "evidence"
FILES: dict[str, bytes | str] = {
    **BASE,
    **OPEN_MPI_4,
    "/var/lib/dpkg/status": "Package: libucx0\nStatus: install ok installed\nVersion: 1.13.1-1\n\n",
    "/usr/lib/libucp.so.0": elf(soname="libucp.so.0", text=b"\x001.13.1\0"),
    "/opt/venv/lib/python3.11/site-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so": elf(
        needed=("libmpi.so.40",)
    ),
    "/opt/venv/lib/python3.11/site-packages/mpi4py-4.0.3.dist-info/METADATA": "Name: mpi4py\n",
    "/opt/toolkit/stack.json": json.dumps({"recipe": "x", "mpi": "openmpi"}),
    "/.singularity.d/labels.json": '{"title": "x"}',
    "/.singularity.d/runscript": "OCI_ENTRYPOINT=''\nOCI_CMD='\"/bin/bash\"'\n",
    "/.singularity.d/env/90-environment.sh": 'export PATH="/opt/venv/bin:$PATH"\n',
}
PROCESS = {"Entrypoint": ["/usr/bin/env"], "Cmd": ["python3"]}


def below(files: dict[str, bytes | str]) -> dict[str, bytes | str]:
    return {name.lstrip("/"): content for name, content in files.items()}


@cache
def layers() -> tuple[bytes, ...]:
    half = len(FILES) // 2
    names = list(FILES)
    upper = {**{n: FILES[n] for n in names[half:]}, "/opt/.wh.old": "", "/var/.wh..wh..opq": ""}
    return tar(below({n: FILES[n] for n in names[:half]} | {"/opt/old/x": "1"})), tar(below(upper))


@cache
def flat() -> tuple[bytes, ...]:
    """Return valid images that consist of a single file."""
    plain = squashfs({n: c.encode() if isinstance(c, str) else c for n, c in FILES.items() if c[:2] != "->"})
    tiny = [(DATA / f"tiny.{kind}").read_bytes() for kind in ("gzip", "xz", "lz4", "zstd")]
    found = [plain, sif(plain), *tiny, sif(tiny[0]), sif(tiny[3])]
    for pack, packed in PACK.items():
        found.append(packed(tar(docker_archive(list(layers()), **PROCESS))))
        found.append(tar(oci_layout(list(layers()), pack=pack, **PROCESS)))
    return tuple(found)


def archive_of(layers: list[bytes], chance: random.Random) -> bytes:
    """Return an archive of ``layers`` with correct digests, even if the layers are damaged."""
    pack = chance.choice(list(PACK))
    if chance.random() < 0.5:
        files = docker_archive(layers, **PROCESS)
        return PACK[pack](tar(files))
    return tar(oci_layout(layers, pack=pack, **PROCESS))


def archive_with(about: bytes, manifest: bytes | None = None) -> bytes:
    files = {f"{named(layer)}/layer.tar": layer for layer in layers()}
    listed = [{"Config": f"{named(about)}.json", "RepoTags": ["a:1"], "Layers": list(files)}]
    return tar(
        {**files, f"{named(about)}.json": about, "manifest.json": manifest or json.dumps(listed).encode()}
    )


def configuration() -> bytes:
    return config(list(layers()), **PROCESS)


@cache
def host() -> HostFacts:
    return load(EVIDENCE / "virtual-cluster-login.txt")


@cache
def bundles() -> tuple[bytes, ...]:
    """Return valid facts files: recorded answers of the probe, and their facts as JSON."""
    answers = [file.read_bytes() for file in sorted(EVIDENCE.glob("*.txt"))]
    facts = msgspec.json.encode(host())
    raw = json.dumps({"schema": "toolkit.facts/1", "host": json.loads(facts), "raw": answers[0].decode()})
    return (*answers, facts, raw.encode())


@cache
def image() -> ImageFacts:
    return inspect(DATA / "tiny.zstd")
