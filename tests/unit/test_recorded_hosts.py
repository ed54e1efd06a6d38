"""Test that recorded files contain no package index, no internal host and no credentials."""

import re
from pathlib import Path

from tests.unit.tables import every_row

TESTS = Path(__file__).parents[1]
PUBLIC = frozenset(
    {
        "apptainer.org",
        "arxiv.org",
        "bugs.debian.org",
        "cms.ncas.ac.uk",
        "docs.anaconda.com",
        "docs.docker.com",
        "docs.google.com",
        "docs.hpc.sjtu.edu.cn",
        "docs.jax.dev",
        "developers.google.com",
        "docs.julialang.org",
        "docs.nvidia.com",
        "docs.pytorch.org",
        "docs.wandb.ai",
        "download.pytorch.org",
        "flax.readthedocs.io",
        "gist.github.com",
        "hpc-community.unige.ch",
        "hub.docker.com",
        "git-lfs.github.com",
        "github.com",
        "huggingface.co",
        "jade-hpc-gpu.github.io",
        "julialang.org",
        "meta-pytorch.github.io",
        "pytorch.org",
        "vsoch.github.io",
        "wandb.ai",
        "www.debian.org",
        "www.mcs.anl.gov",
        "www.nvidia.com",
        "www.open-mpi.org",
        "www.tensorflow.org",
    }
)
"""Public hosts in programs' messages, and the package index of PyTorch."""
PRINTED = frozenset(
    {
        "127.0.0.1",
        "google.protobuf.internal",
        "java.io",
        "n3.internal",
        "nvcr.io",
        "nvidia.com",
        "numpy.org",
        "quay.io",
        "scipy.io",
        "self.net",
        "runtime.nvidia.com",
        "software.eessi.io",
        "t.local",
        "type.googleapis.com",
    }
)
"""Words in logs and golden scripts that look like host names, such as the package ``java.io``."""
RESERVED = re.compile(r"(?:.+\.)?(?:example(?:\.(?:com|net|org))?|invalid|test|localhost)")
"""Names that RFC 2606 and RFC 6761 reserve for examples."""

_URL = re.compile(
    r"\b(?:https?|ftp|git|ssh)://(?P<user>[^\s/@\"']*@)?(?P<host>[^\s/:\"'<>)\\]+)", re.IGNORECASE
)
_LAST = re.compile(
    r"(?<=[a-z0-9])\.(?:com|org|net|io|dev|cloud|internal|intranet|intra|corp|lan|local|localdomain)(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?<![\w.-])(?:[a-z0-9][a-z0-9-]*\.)*[a-z0-9][a-z0-9-]*$", re.IGNORECASE)


def bare_hosts(text: str) -> set[str]:
    found = set()
    for last in _LAST.finditer(text):
        before = _BEFORE.search(text, max(0, last.start() - 100), last.start())
        if before:
            found.add((before[0] + last[0]).lower())
    return found


def recorded() -> list[Path]:
    found = [path for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return [path for path in found if path.suffix not in {".py", ".diff"} and not path.name.startswith(".")]


def wrong_hosts(text: str) -> list[str]:
    """Return the forbidden hosts in a text, and ``user@host`` for each URL with credentials."""
    urls = list(_URL.finditer(text))
    names = {match["host"].lower() for match in urls} | bare_hosts(text)
    bad = {name for name in names if name not in PUBLIC | PRINTED and not RESERVED.fullmatch(name)}
    return sorted(bad | {f"user@{match['host'].lower()}" for match in urls if match["user"]})


def test_no_recorded_file_names_a_package_index_or_an_internal_host():
    files = recorded()
    assert len(files) > 50
    found = {
        str(path.relative_to(TESTS)): bad
        for path in files
        if (bad := wrong_hosts(path.read_bytes().decode(errors="replace")))
    }
    assert found == {}


@every_row(
    ("text", "bad"),
    [
        ("Custom Information: https://packages.made-up.org/p/x/1.2/", ["packages.made-up.org"]),
        ("--index-url http://ada:secret@h.example/simple", ["user@h.example"]),
        ("CC=/opt/x from wheels.made-up.internal", ["wheels.made-up.internal"]),
        ("git://mirror/openmpi", ["mirror"]),
        ("see https://www.open-mpi.org/faq and docs.nvidia.com; h.example:5000/simple", []),
        ("libmpi.so.12 lib.local.rank comm.org_id", []),
    ],
)
def test_a_host_is_found_with_and_without_a_scheme(text: str, bad: list[str]):
    assert wrong_hosts(text) == bad
