"""Read the version texts in libraries of MPICH and its derivatives (Intel MPI, MVAPICH2)."""

import re
from dataclasses import dataclass

from toolkit.image.files.pages import Pages
from toolkit.image.loader.elf import symbol
from toolkit.sonames import plain

_LABELS = {
    "Version": "string",
    "Release date": "date",
    "ABI": "ABI",
    "Device": "device",
    "configure": "configure",
    "CC": "CC",
    "CXX": "CXX",
    "F77": "F77",
    "FC": "FC",
    "features": "features",
    "Custom Information": "custom",
}
"""The labels in the text that MPI_Get_library_version returns. Each label maps to a suffix. MPICH's variable
with this suffix, such as ``MPII_Version_device``, has the value for the label
(pmodels/mpich:src/binding/c and src/util/mpir_get_library_version; src/mpi/init/globals.c).
"""
_LINE = rb"MPICH [A-Za-z0-9 ]{2,20}:[ \t]*%s\n"
_FIRST = (
    rb"\0(MPICH Version:[ \t]*%s\n(?:" + _LINE + rb")*)(?=\0)",
    rb"\0(MPICH Custom Information:[ \t]*%s\n)(?=\0)",
)
_THREADCOMM = b"MPIR_Threadcomm_dup_impl"
"""A function in builds of MPICH with the feature ``threadcomm``, the only optional feature up to MPICH 5.0
(pmodels/mpich:src/mpi/threadcomm/threadcomm_impl.c and get_feature_list).
"""
_LONGEST = 8191
"""Maximum length of the version text in bytes: MPI_MAX_LIBRARY_VERSION_STRING without the NUL byte."""
_INTEL = re.compile(
    rb"Intel\(R\) MPI Library (%s|20\d\d[^\0%]{0,40}?)( for Linux\* OS\n?)\0{1,8}([^\0]{1,40})?"
)
_CRAY = re.compile(rb"CRAY MPICH version (\d{1,3}(?:\.\d{1,4}){1,4})")
"""A pattern for the release of Cray MPICH. Cray's library also contains the release of MPICH on which Cray
MPICH is based, which is a different number.
"""
_DEVICE = rb"(?P<device>ch[34](?::\w{1,20})?(?:[ ,]\w{1,20}){0,5})\0{1,64}"
_CONFIGURE = rb"(?P<configure>(?!\d{1,4}:\d{1,4}:\d{1,4}\0)[^\0]{1,16000})\0{1,64}"
_REST = (
    rb"(?:(?P<ABI>\d{1,4}:\d{1,4}:\d{1,4})\0{1,64})?(?P<date>[^\0]{8,60})\0{1,64}"
    rb"(?P<string>\d{1,4}\.\d[\w.]{0,20})(?=\0)"
)
_TOGETHER = (
    re.compile(rb"\0(?=-)" + _CONFIGURE + _DEVICE + _REST),
    re.compile(rb"\0" + _DEVICE + _CONFIGURE + _REST),
)
"""Patterns for the values of the labels Version, Release date, ABI, Device and configure. Compilers place
these values next to each other in the library, in one of two orders.
"""
_BEFORE = re.compile(
    rb"(?:\0(?P<custom>[^\0]*[^\w\0][^\0]*)\0{1,32}|\0|\w\0+)"
    rb"(?P<FC>[^\0 ]*(?:fort|f77|f90|f95|ifx|ftn|flang)[^\0]*)\0+"
    rb"(?P<F77>[^\0 ]*(?:fort|f77|f90|f95|ifx|ftn|flang)[^\0]*)\0+"
    rb"(?P<CXX>[^\0 ]*(?:\+\+|CC|icpx|cxx)[^\0]*)\0+(?P<CC>[^\0 ]*(?:cc|clang|icx|nvc)[^\0]*)\0+\Z"
)
"""A pattern for the names of the compilers that built MPICH (the labels CC, CXX, F77 and FC). In the library,
these names precede the values that ``_TOGETHER`` matches. Each name must look like the name of a compiler.
"""
_BEFORE_MOST = 4096
_OWN_SHM = re.compile(rb"MPIDI_POSIX_(?!mpi_\w+_release_gather)\w+")
"""A pattern for the names of functions in MPICH's shared memory module. The pattern excludes names such as
``MPIDI_POSIX_mpi_bcast_release_gather``, which every build contains as values of settings."""


@dataclass(frozen=True, slots=True)
class MpichDescription:
    """The facts that toolkit read in an MPICH library; a fact is None if toolkit does not find the fact.

    ``text`` is the text that MPI_Get_library_version returns. ``device`` is MPICH's communication layer, such
    as ``ch4:ofi``. ``own_shm`` says whether the library has MPICH's shared memory module.
    """

    version: str | None = None
    text: str | None = None
    device: str | None = None
    own_shm: bool | None = None


def read_description(content: bytes, library: Pages, implementation: str) -> MpichDescription:
    """Return the facts in the library of MPICH or of an MPI that is based on MPICH.

    ``content`` is the library's data, without machine code. ``implementation`` is, for example, ``mpich``,
    ``cray`` or ``intelmpi``.
    """
    if implementation == "intelmpi":
        return _intel(content, _device(_variable(library, "device")))
    values = {name: _variable(library, name) for name in _LABELS.values()}
    if values["device"] is None and (hidden := _side_by_side(content)):
        values |= _texts(hidden)
        before = content[max(0, hidden.start() + 1 - _BEFORE_MOST) : hidden.start() + 1]
        if compilers := _BEFORE.search(before):
            values |= {"custom": "", **_texts(compilers)}
    device = _device(values["device"])
    values["features"] = _features(content, device)
    version = values["string"]
    if implementation == "cray":
        named = _CRAY.search(content)
        version = named[1].decode() if named else None
    return MpichDescription(
        version=version if version and re.match(r"\d{1,4}\.\d", version) and len(version) < 40 else None,
        text=_text(content, values) if implementation == "mpich" else None,
        device=device,
        own_shm=bool(_OWN_SHM.search(content)) if device and device.startswith("ch4") else None,
    )


def interfaces(content: bytes, closure: dict[str, str | None]) -> dict[str, str]:
    """Return the launch interfaces of an MPICH: ``pmi1``, ``pmi2`` or ``pmix``. Each interface maps to
    ``linked``, because MPICH has no plugins.

    Most builds contain the PMI-1 wire protocol, which Slurm's pmi2 plugin and Hydra (MPICH's launcher) use.
    Libraries with this protocol contain the text ``PMI_FD``. A build for Slurm's PMI libraries is instead
    linked with libpmi or libpmi2.
    """
    faces: dict[str, str] = {}
    linked = {plain(soname).partition(".so")[0] for soname in closure}
    if "libpmix" in linked:
        faces["pmix"] = "linked"
    if b"PMI_FD" in content or "libpmi" in linked:
        faces["pmi1"] = "linked"
    if b"PMI2_Init" in content or "libpmi2" in linked:
        faces["pmi2"] = "linked"
    return dict(sorted(faces.items()))


def _variable(library: Pages, name: str) -> str | None:
    """Return the value of MPICH's variable ``MPII_Version_<name>``; before MPICH 3.3, the variable is
    ``MPIR_Version_<name>``.
    """
    text = symbol(library, f"MPII_Version_{name}")
    return text if text is not None else symbol(library, f"MPIR_Version_{name}")


def _side_by_side(content: bytes) -> "re.Match[bytes] | None":
    return next((match for order in _TOGETHER if (match := order.search(content))), None)


def _texts(match: "re.Match[bytes]") -> dict[str, str]:
    return {
        name: text.decode("utf-8", "replace") for name, text in match.groupdict().items() if text is not None
    }


def _features(content: bytes, device: str | None) -> str | None:
    """Return the optional features with which MPICH was built: ``threadcomm`` or an empty text. Return None
    if the features are unknown.
    """
    if _THREADCOMM in content:
        return "threadcomm"
    return "" if device and device.startswith("ch3") else None


def _device(text: str | None) -> str | None:
    """Return a device in the syntax of MPICH's option ``--with-device``: ``ch4:ofi,ucx`` for ``ch4:ofi ucx``.
    Return None if ``text`` is not a device.
    """
    if not text or not re.fullmatch(r"ch\d[\w:, ]{0,60}", text.strip()):
        return None
    return ",".join(text.replace(",", " ").split())


def _text(content: bytes, values: dict[str, str | None]) -> str | None:
    """Return the text that MPI_Get_library_version would return: the library's format strings with ``values``
    inserted. Return None if the library has no such format strings, or if a value is unknown.
    """
    pieces = [m[1].decode() for first in _FIRST if (m := re.search(first, content))]
    if not pieces:
        return None
    whole = "".join(pieces)
    lines: list[str] = []
    for line in whole.splitlines(keepends=True):
        label = line.removeprefix("MPICH ").partition(":")[0]
        value = values.get(_LABELS.get(label, ""))
        if value is None:
            return None
        if value or label != "Custom Information":
            lines.append(line.replace("%s", value))
    return "".join(lines)[:_LONGEST]


def _intel(content: bytes, device: str | None) -> MpichDescription:
    match = _INTEL.search(content)
    if match is None:
        return MpichDescription(device=device)
    version = match[1] if match[1] != b"%s" else match[3] or b""
    release = re.search(rb"(20\d\d(?:\.\d{1,3}){0,3})(?: Update (\d{1,2}))?", version)
    if release is None:
        return MpichDescription(device=device)
    # The library of an older Intel MPI says "2019 Update 4", for example. toolkit writes 2019.4.
    number = ".".join(part.decode() for part in release.groups() if part)
    text = f"Intel(R) MPI Library {version.decode('utf-8', 'replace')}{match[2].decode()}"
    return MpichDescription(version=number, text=text, device=device)
