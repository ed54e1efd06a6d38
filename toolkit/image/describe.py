"""Describe an image from its files: what is really inside, and where that differs from what it says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from toolkit.image import tree as files
from toolkit.image.bounded import BoundedTree, Budget
from toolkit.image.libraries import glibc, hwloc, operations, ucx
from toolkit.image.loader import Loader, environment
from toolkit.image.mpi import MpiFound, find_mpis
from toolkit.image.packages import Found, Untold, debian, python_package, sites
from toolkit.image.stated import Also, disagreements, labels, stack
from toolkit.image.tree import FileTree
from toolkit.model.facts import ImageFacts, ImageMpi
from toolkit.model.stack import STACK_PATH

_KEPT = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")
_KEPT_PREFIXES = ("OMPI_", "PMIX_", "PRTE_", "OPAL_", "UCX_", "FI_", "HOROVOD_", "I_MPI_", "MPICH_", "MPIR_")
_MOST = 1 << 16
_SURELY = {"digest"}
"""Absent for a reason that no file can change."""
_PROGRAMS = ("/bin/sh", "/usr/bin/env", "/bin/ls")


@dataclass
class _Book:
    """Collects the facts' evidence while they are read."""

    evidence: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, found: Found | Untold | None, looked_for: str) -> str | None:
        """Keep a fact's evidence, or that it is not there or not told, and return its value."""
        if isinstance(found, Untold):
            self.unknown[name] = found.reason
            return None
        if found is None:
            self.absent[name] = looked_for
            return None
        self.evidence[name] = found.evidence
        return found.version

    def doubt(self, unread: Mapping[str, str]) -> None:
        """Call unknown what was not found, where it may be in something that could not be read."""
        if not unread:
            return
        path, reason = next(iter(unread.items()))
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        for name in self.absent.keys() - _SURELY:
            self.unknown[name] = f"{self.absent.pop(name)}; but {path}{more} cannot be read: {reason}"


def describe(
    opened: FileTree, path: Path, form: str, *, architecture: str | None, digest: str | None, budget: Budget
) -> ImageFacts:
    """Read everything that the rules ask about an image.

    Raises:
        CheckFailed: if the image is made so that its reading would not end.
    """
    tree = BoundedTree(opened, budget)
    book = _Book()
    given = environment(tree)
    loader = Loader(tree, given)
    packages, places = debian(tree), sites(tree)
    mpis = find_mpis(loader, packages)
    first = mpis[0] if mpis else None
    facts = ImageFacts(
        path=str(path),
        format=form,
        digest=_digest(digest, form, book),
        architecture=_architecture(loader, architecture, book),
        distribution=book.take("distribution", _distribution(tree), "/etc/os-release: not in the image"),
        glibc=book.take("glibc", glibc(tree), "libc.so.6: not in the image (musl, or no system at all)"),
        mpi=_mpi(first, book),
        other_mpis=tuple(m.mpi for m in mpis[1:]),
        pmix=_pmix(first, book),
        ucx=book.take(
            "ucx", ucx(loader, packages), "libucp.so.0: neither a package nor on the loader's path"
        ),
        libfabric=_path(
            "libfabric", loader.find("libfabric.so.1"), "libfabric.so.1 on the loader's path", book
        ),
        ssh=_path("ssh", loader.program("ssh"), "ssh on the image's PATH", book),
        python=book.take("python", _python(tree, loader), "python3 on the image's PATH: not in the image"),
        tensorflow=_package(tree, places, "tensorflow", book, "tensorflow_cpu", "tensorflow_intel"),
        horovod=_package(tree, places, "horovod", book),
        mpi4py=_package(tree, places, "mpi4py", book),
        labels=labels(tree),
        environment={k: v for k, v in given.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)},
        stack=_stack(tree, book),
        evidence=book.evidence,
        absent=book.absent,
        unknown=book.unknown,
    )
    also = _also(loader, packages, places, tree)
    book.doubt(tree.unread)
    return msgspec.structs.replace(facts, disagreements=disagreements(facts, also))


def _also(loader: Loader, packages: dict[str, str], places: tuple[str, ...], tree: BoundedTree) -> Also:
    numpy, found = python_package(tree, places, "numpy"), hwloc(loader, packages)
    whole = not tree.unread
    return Also(
        numpy=numpy.version if numpy else "" if whole else None,
        hwloc=found.version if isinstance(found, Found) else "" if found is None and whole else None,
        operations=operations(tree, places),
    )


def _digest(digest: str | None, form: str, book: _Book) -> str | None:
    if digest is None and form == "sandbox":
        book.absent["digest"] = "a sandbox is a folder, of which there is no digest"
    elif digest is None:
        book.unknown["digest"] = "the file is large, and no FILE.sha256 beside it names one"
    return digest


def _mpi(found: MpiFound | None, book: _Book) -> ImageMpi | None:
    if found is None:
        book.absent["mpi"] = "libmpi, libmpich: neither on the loader's path nor in the usual places"
        return None
    book.evidence.update(found.evidence)
    book.unknown.update(found.unknown)
    if found.mpi.launcher is None:
        book.absent["mpi.launcher"] = "mpirun, mpiexec: neither beside the library nor on the image's PATH"
    return found.mpi


def _pmix(found: MpiFound | None, book: _Book) -> str | None:
    if found is not None and found.mpi.interfaces is None:
        book.unknown["pmix"] = f"{found.mpi.library}: {found.unknown['mpi.interfaces']}"
        return None
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


def _distribution(tree: FileTree) -> Found | Untold | None:
    content = files.text(tree, "/etc/os-release", _MOST) or files.text(tree, "/usr/lib/os-release", _MOST)
    if content is None:
        return None
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', content, re.MULTILINE))
    shown = " ".join(w for w in (values.get("ID"), values.get("VERSION_ID")) if w)
    if code := values.get("VERSION_CODENAME"):
        shown += f" ({code})"
    return Found(shown, f"/etc/os-release: {shown}") if shown else Untold("/etc/os-release has no ID")


def _python(tree: FileTree, loader: Loader) -> Found | Untold | None:
    """Read the version of the first python3 on PATH: from pyvenv.cfg beside it, or its real name."""
    program = loader.program("python3")
    if program is None:
        return None
    settings = f"{program.removesuffix('/bin/python3')}/pyvenv.cfg"
    written = files.text(tree, settings, _MOST) or ""
    if said := re.search(
        r"^version(?:_info)?[ \t]*=[ \t]*(\d{1,2}\.\d{1,3}\.\d{1,3})", written, re.MULTILINE
    ):
        return Found(said[1], f"{settings}: version = {said[1]}")
    real = files.resolve(tree, program) or program
    said = re.search(r"python(\d{1,2}\.\d{1,3})$", real)
    return Found(said[1], f"{program} is {real}") if said else Untold(f"{program} does not tell its version")


def _stack(tree: FileTree, book: _Book) -> dict[str, object] | None:
    found, why = stack(tree)
    if found is not None:
        book.evidence["stack"] = f"{STACK_PATH}: {len(found)} entries"
    elif why:
        book.unknown["stack"] = why
    else:
        book.absent["stack"] = f"{STACK_PATH}: not in the image"
    return found
