"""Read ``runtime.toml``: the abilities and faults of releases of container runtimes."""

import re
from functools import cache
from typing import Literal

import msgspec

from toolkit.knowledge.fabric import Small
from toolkit.knowledge.reading import Row, read
from toolkit.versions import older, within


class Unreadable(Row, frozen=True, kw_only=True):
    """Image formats that releases of a runtime cannot start. An empty ``versions`` means all releases."""

    name: str
    versions: str
    formats: tuple[str, ...]
    because: str


class Forbidden(Row, frozen=True, kw_only=True):
    """An image format, and the runtime setting that forbids this format if the setting's value is ``no``."""

    format: str
    setting: str


class Retired(Row, frozen=True, kw_only=True):
    """Releases of a runtime that no longer get fixes, and the runtime's successor."""

    name: str
    versions: str
    successor: str


class Vulnerable(Row, frozen=True, kw_only=True):
    """Releases of a runtime with a published security fault.

    If ``setuid`` is true, the fault affects only setuid installations. If ``setting`` is given, the fault
    affects only installations whose configuration file has a value for this setting.
    """

    name: str
    versions: str
    cve: str
    because: str
    fixed: str
    setuid: bool = False
    setting: str = ""


class Compression(Row, frozen=True, kw_only=True):
    """A compression method of squashfs, and the oldest kernel that can mount images with this compression."""

    name: str
    kernel: str


class SetuidFuse(Row, frozen=True, kw_only=True):
    """Releases whose setuid installation mounts images with squashfuse if the settings forbid kernel mounts.

    ``setting`` names a setting of the runtime, and ``default`` is the default value. If the setting has the
    value in ``always``, the kernel mounts images. If the setting has the value in ``limited``, the kernel
    mounts images only if the configuration has a setting in ``limits``.
    """

    name: str
    versions: str
    setting: str
    default: str
    always: str
    limited: str = ""
    limits: tuple[str, ...] = ()

    def by_kernel(self, settings: dict[str, str]) -> bool:
        """Return whether the settings of the runtime allow the kernel to mount an image."""
        value = settings.get(self.setting, self.default)
        return value == self.always or (
            value == self.limited and any(name in settings for name in self.limits)
        )


class Mount(Row, frozen=True, kw_only=True):
    """``way`` says how a release of a runtime starts an image that the kernel does not mount.

    ``unless`` names a setting of the runtime. If the setting has the value ``yes``, the row does not apply.
    """

    name: str
    versions: str
    way: Literal["unpacked", "squashfuse", "either"]
    unless: str = ""


class MissedDriver(Row, frozen=True, kw_only=True):
    """Releases of a runtime that may not find the GPU driver's libraries."""

    name: str
    versions: str
    because: str


class HiddenGpus(Row, frozen=True, kw_only=True):
    """Releases of a runtime that do not mount GPU devices into a container with a separate ``/dev``."""

    name: str
    versions: str


class GlibcHooks(Row, frozen=True, kw_only=True):
    """A runtime whose hooks run glibc's ``ldconfig`` in every container before a program starts."""

    name: str
    because: str


class NeededKernel(Row, frozen=True, kw_only=True):
    """The oldest kernel on which the runtime's releases within ``versions`` work. ``backported`` is a pattern
    for older kernels that may also work.
    """

    name: str
    versions: str
    kernel: str
    because: str
    backported: str = ""

    def lacks(self, kernel: str) -> bool:
        """Return whether a kernel is too old for the runtime. The result is false for an old kernel that
        matches ``backported``.
        """
        return older(kernel, self.kernel) and not re.search(self.backported or "$^", kernel)


class Fuse(Row, frozen=True, kw_only=True):
    """The oldest kernel on which users can mount with FUSE. ``backported`` is a pattern for older kernels
    that also allow FUSE mounts.
    """

    kernel: str
    backported: str

    def allows(self, kernel: str) -> bool:
        """Return whether users can mount with FUSE on this kernel; true if the version is unknown."""
        return not older(kernel, self.kernel) or re.search(self.backported, kernel) is not None


class Option(Row, frozen=True, kw_only=True):
    """An option of a runtime's ``exec`` command, and the releases that have the option."""

    name: str
    option: str
    versions: str


class RuntimeKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of ``runtime.toml``."""

    unreadable: tuple[Unreadable, ...]
    forbidden: tuple[Forbidden, ...]
    retired: tuple[Retired, ...]
    vulnerable: tuple[Vulnerable, ...]
    compression: tuple[Compression, ...]
    setuid_fuse: tuple[SetuidFuse, ...]
    option: tuple[Option, ...]
    mount: tuple[Mount, ...]
    fuse: Fuse
    kernel: tuple[NeededKernel, ...]
    missed_driver: tuple[MissedDriver, ...]
    hidden_gpus: tuple[HiddenGpus, ...]
    glibc_hooks: tuple[GlibcHooks, ...]
    session: Small


_KIN = {"singularity-pro": "singularity-ce"}
"""Each key is a runtime, and its value is a related runtime. The related runtime's rows of ``unreadable``,
``setuid_fuse``, ``mount`` and ``option`` apply to both runtimes.

SingularityPRO is the SingularityCE with the same release number, plus additions (sylabs/singularity:
releases, v4.6.0). Rows of ``retired`` do not apply to SingularityPRO, because it gets fixes for longer.
"""


@cache
def runtime() -> RuntimeKnowledge:
    """Return the content of ``runtime.toml``."""
    return read("runtime", RuntimeKnowledge)


def why_unreadable(name: str, version: str, form: str) -> Unreadable | None:
    """Return the row of ``runtime.toml`` that says why a runtime cannot start images of the format ``form``.
    Return ``None`` if the runtime can start such images.
    """
    rows = (r for r in runtime().unreadable if r.name == _kin(name) and form in r.formats)
    return next((r for r in rows if not r.versions or within(version, r.versions)), None)


def successor_of(name: str, version: str) -> Retired | None:
    """Return the row of ``runtime.toml`` about a release that gets no more fixes. The row names the runtime
    to use instead. Return ``None`` if the release still gets fixes.
    """
    return next((r for r in runtime().retired if r.name == name and within(version, r.versions)), None)


def vulnerabilities_of(name: str, version: str) -> tuple[Vulnerable, ...]:
    """Return the published security faults of a release, including faults that need a certain setting."""
    return tuple(r for r in runtime().vulnerable if r.name == name and within(version, r.versions))


def setuid_fuse(name: str, version: str) -> SetuidFuse | None:
    """Return the row of ``runtime.toml`` that decides whether the kernel or squashfuse mounts images in a
    setuid installation of this release. Return ``None`` if the kernel always mounts images.
    """
    return next(
        (r for r in runtime().setuid_fuse if r.name == _kin(name) and within(version, r.versions)), None
    )


def mount(name: str, version: str) -> Mount | None:
    """Return the row of ``runtime.toml`` about how a runtime starts an image that the kernel does not mount.
    Return ``None`` if there is no such row.
    """
    return next((r for r in runtime().mount if r.name == _kin(name) and within(version, r.versions)), None)


def knows(name: str, version: str, option: str) -> bool:
    """Return whether a release of a runtime has an option, such as ``--sharens``."""
    rows = (r for r in runtime().option if r.name == _kin(name) and r.option == option)
    return any(within(version, r.versions) for r in rows)


def depends_on_release(name: str) -> bool:
    """Return whether some releases of a runtime no longer get fixes, or cannot start some image formats."""
    table = runtime()
    named = {*(row.name for row in table.unreadable), *(row.name for row in table.retired)}
    return _kin(name) in set(map(_kin, named))


def _kin(name: str) -> str:
    """Return the related runtime in ``_KIN``, or ``name`` if there is no related runtime."""
    return _KIN.get(name, name)
