"""Describe an image from its files: what is really inside, and where that differs from what it says."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from toolkit.image import tree as files
from toolkit.image.loader import Loader, environment
from toolkit.image.mpi import MpiFound, find_mpis
from toolkit.image.packages import Found, debian, python_package, sites
from toolkit.image.tree import FileTree
from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.model.stack import STACK_PATH, Stack
from toolkit.versions import same, upstream

_KEPT = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")
_KEPT_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "OPAL_", "UCX_", "FI_", "HOROVOD_", "I_MPI_", "MPICH_", "MPIR_")
_LIBC = (
    "/lib/*-linux-gnu*/libc.so.6",
    "/usr/lib/*-linux-gnu*/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib64/libc.so.6",
)
_PROGRAMS = ("/bin/sh", "/usr/bin/env", "/bin/ls")
_LABELS = "/.singularity.d/labels.json"


@dataclass
class _Book:
    """Collects the facts' evidence while they are read."""

    evidence: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, found: Found | None, looked_for: str) -> str | None:
        """Keep a fact's evidence, or that it is not there, and return its value."""
        if found is None:
            self.absent[name] = looked_for
            return None
        self.evidence[name] = found.evidence
        return found.version


def describe(
    tree: FileTree, path: Path, form: str, *, architecture: str | None, digest: str | None
) -> ImageFacts:
    """Read everything that the rules ask about an image."""
    book = _Book()
    given = environment(tree)
    loader = Loader(tree, given)
    packages, places = debian(tree), sites(tree)
    mpis = find_mpis(loader, packages)
    first = mpis[0] if mpis else None
    facts = ImageFacts(
        path=str(path),
        format=form,
        digest=digest,
        architecture=_architecture(loader, architecture, book),
        distribution=book.take("distribution", _distribution(tree), "/etc/os-release: not in the image"),
        glibc=book.take("glibc", _glibc(tree), "libc.so.6: not in the image (musl, or no system at all)"),
        mpi=_mpi(first, book),
        other_mpis=tuple(m.mpi for m in mpis[1:]),
        pmix=_pmix(first, book),
        ucx=book.take("ucx", _ucx(packages), "libucx: no package of that name"),
        libfabric=_path(
            "libfabric", loader.find("libfabric.so.1"), "libfabric.so.1 on the loader's path", book
        ),
        ssh=_path("ssh", loader.program("ssh"), "ssh on the image's PATH", book),
        python=book.take("python", _python(tree, loader), "python3: not in the image"),
        tensorflow=_package(tree, places, "tensorflow", book, "tensorflow_cpu", "tensorflow_intel"),
        horovod=_package(tree, places, "horovod", book),
        mpi4py=_package(tree, places, "mpi4py", book),
        labels=_labels(tree),
        environment={k: v for k, v in given.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)},
        stack=_stack(tree, book),
        evidence=book.evidence,
        absent=book.absent,
        unknown=book.unknown,
    )
    return msgspec.structs.replace(facts, disagreements=_disagreements(facts))


def _mpi(found: MpiFound | None, book: _Book) -> ImageMpi | None:
    if found is None:
        book.absent["mpi"] = "libmpi, libmpich: neither on the loader's path nor in the usual places"
        return None
    book.evidence.update(found.evidence)
    if found.mpi.version is None:
        book.unknown["mpi.version"] = f"{found.mpi.library} does not tell its version"
    if found.mpi.launcher is None:
        book.absent["mpi.launcher"] = "mpirun, mpiexec: neither beside the library nor on the image's PATH"
    return found.mpi


def _pmix(found: MpiFound | None, book: _Book) -> str | None:
    if found is not None and found.pmix is None and "pmix" in (found.mpi.interfaces or ()):
        book.unknown["pmix"] = f"{found.mpi.library} speaks PMIx, of which release could not be told"
        return None
    return book.take("pmix", found.pmix if found else None, "the MPI in the image has no PMIx client")


def _path(name: str, path: str | None, looked_for: str, book: _Book) -> str | None:
    book.take(name, Found(path, path) if path else None, f"{looked_for}: not in the image")
    return path


def _package(tree: FileTree, places: tuple[str, ...], name: str, book: _Book, *others: str) -> str | None:
    found = python_package(tree, places, name, *others)
    return book.take(name, found, f"{name}: no Python package of that name")


def _architecture(loader: Loader, stated: str | None, book: _Book) -> str | None:
    if stated:
        book.evidence["architecture"] = f"the SIF's header: {stated}"
        return stated
    for program in _PROGRAMS:
        elf = loader.elf(program)
        if elf and elf.architecture:
            book.evidence["architecture"] = f"{program}: {elf.architecture}"
            return elf.architecture
    book.unknown["architecture"] = f"none of {', '.join(_PROGRAMS)} is a program that can be read"
    return None


def _distribution(tree: FileTree) -> Found | None:
    content = files.text(tree, "/etc/os-release") or files.text(tree, "/usr/lib/os-release")
    if content is None:
        return None
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', content, re.MULTILINE))
    shown = " ".join(w for w in (values.get("ID"), values.get("VERSION_ID")) if w)
    if code := values.get("VERSION_CODENAME"):
        shown += f" ({code})"
    return Found(shown, f"/etc/os-release: {shown}") if shown else None


def _glibc(tree: FileTree) -> Found | None:
    for pattern in _LIBC:
        for path in files.glob(tree, pattern):
            content = files.read(tree, path) or b""
            if said := re.search(rb"stable release version (\d+\.\d+)", content):
                return Found(said[1].decode(), f"{path}: release version {said[1].decode()}")
    return None


def _ucx(packages: dict[str, str]) -> Found | None:
    name = next((n for n in ("libucx0", "libucx0t64") if n in packages), None)
    return Found(packages[name], f"dpkg: {name} {packages[name]}") if name else None


def _python(tree: FileTree, loader: Loader) -> Found | None:
    """Read the version of the first python3 on PATH: from pyvenv.cfg beside it, or its real name."""
    program = loader.program("python3")
    if program is None:
        return None
    settings = files.text(tree, f"{program.removesuffix('/bin/python3')}/pyvenv.cfg") or ""
    if said := re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+\.\d+)", settings, re.MULTILINE):
        return Found(said[1], f"{program.removesuffix('/bin/python3')}/pyvenv.cfg: version = {said[1]}")
    real = files.resolve(tree, program) or program
    said = re.search(r"python(\d+\.\d+)$", real)
    return Found(said[1], f"{program} is {real}") if said else None


def _labels(tree: FileTree) -> dict[str, str]:
    try:
        found = json.loads(files.text(tree, _LABELS, 1 << 20) or "{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _stack(tree: FileTree, book: _Book) -> dict[str, object] | None:
    content = files.text(tree, STACK_PATH, 1 << 20)
    if content is None:
        book.absent["stack"] = f"{STACK_PATH}: not in the image"
        return None
    try:
        found = json.loads(content)
    except ValueError as error:
        book.unknown["stack"] = f"{STACK_PATH}: no JSON: {error}"
        return None
    book.evidence["stack"] = f"{STACK_PATH}: {len(found)} entries"
    return found if isinstance(found, dict) else None


def _disagreements(facts: ImageFacts) -> tuple[str, ...]:
    """Compare what the image says with what was found; what was not found is not compared."""
    if facts.stack is None:
        return ()
    try:
        stack = msgspec.convert(facts.stack, Stack)
    except msgspec.ValidationError as error:
        return (f"{STACK_PATH} cannot be read as a stack: {error}",)
    pairs = (
        ("mpi", stack.mpi, facts.mpi.implementation if facts.mpi else ""),
        ("mpi_version", stack.mpi_version, (facts.mpi.version if facts.mpi else "") or ""),
        ("pmix", stack.pmix, facts.pmix or ""),
        ("glibc", stack.glibc, facts.glibc or ""),
        ("architecture", stack.architecture, facts.architecture or ""),
        ("tensorflow", stack.tensorflow, facts.tensorflow or ""),
        ("horovod", stack.horovod, facts.horovod or ""),
        ("mpi4py", stack.mpi4py, facts.mpi4py or ""),
    )
    return tuple(
        f"stack.json says {name} {said or 'is not there'}, found was {upstream(found) if found else 'none'}"
        for name, said, found in pairs
        if not _agree(name, said, found, facts)
    )


def _agree(name: str, said: str, found: str, facts: ImageFacts) -> bool:
    unread = name in facts.unknown or f"mpi.{name.removeprefix('mpi_')}" in facts.unknown
    return unread or said == found or (bool(said and found) and same(said, found))
