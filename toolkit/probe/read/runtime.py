"""Read which container runtime is there, and how it is installed."""

import re

from toolkit.model.facts import ContainerRuntime
from toolkit.probe.evidence import Section

_VERSION = re.compile(r"^(apptainer|singularity(?:-ce|-?pro)?)\s+version\s+(\S+)", re.IGNORECASE)
_PRO = "singularity-pro"
"""It calls itself ``SingularityPRO version 3.11-7.el8`` (sylabs/singularity:e2e/version/version.go)."""
_NUMBER_ALONE = re.compile(r"^\d+\.\d+\S*$", re.ASCII)
"""All that Singularity 2 prints: ``2.6.1-dist`` (sylabs/singularity:bin/singularity.in at 2.6.1)."""


def runtime(section: Section) -> ContainerRuntime | None:
    """Read the ``runtime`` section; ``None`` where there is no Apptainer and no Singularity."""
    path = next(iter(section.values("path")), "")
    if not path:
        return None
    name, version = _release(section) or (path.rpartition("/")[2], "")
    configured = settings(section)
    setuid = _setuid(section, configured)
    return ContainerRuntime(
        name=name,
        version=version,
        path=path,
        setuid=setuid,
        settings=configured,
        unbound=_unbound(section, setuid),
    )


def _release(section: Section) -> tuple[str, str] | None:
    for line in section.lines:
        if found := _VERSION.match(line):
            name = found[1].lower()
            return _PRO if name.endswith("pro") else name, found[2]
        if _NUMBER_ALONE.match(line):
            return "singularity", line
    return None


def settings(section: Section) -> dict[str, str]:
    """Return lines of apptainer.conf: ``setting mount tmp = yes``.

    The first line of a name counts that says something (apptainer/apptainer:pkg/util/apptainerconf/parser.go
    at v1.4.5, GetDirectives and GetConfig; sylabs/singularity:pkg/util/singularityconf/parser.go at v4.3.7).
    """
    found: dict[str, str] = {}
    for name, _, value in (line.partition("=") for line in section.values("setting")):
        if value.strip():
            found.setdefault(name.strip(), value.strip())
    return found


def _unbound(section: Section, setuid: bool | None) -> tuple[str, ...]:
    """Return what cannot be bound: what is not there, and without setuid what this person may not see.

    Apptainer 1.4.5 without setuid ends on either: "mount source … doesn't exist", "permission denied".
    """
    return (*section.values("unbound"), *(section.values("unseen") if setuid is False else ()))


def _setuid(section: Section, configured: dict[str, str]) -> bool | None:
    said = section.values("setuid")
    if not said:
        return None
    return "yes" in said and configured.get("allow setuid") != "no"


def user_namespaces(section: Section) -> bool | None:
    """Tell whether an ordinary user may make a user namespace.

    ``unshare -Ur true`` was tried; where there is no ``unshare`` the kernel's switches can only say no.
    What root may proves nothing for others, unless the switches are there and allow it. Where AppArmor
    restricts them (Ubuntu 24.04), ``unshare`` tells nothing: it is forbidden to all but the programs that a
    profile of their own allows it to, as Apptainer's package brings one for its starter.
    """
    switches = _switches(section)
    off = (
        switches.get("user/max_user_namespaces") == "0"
        or switches.get("kernel/unprivileged_userns_clone") == "0"
    )
    if off:
        return False
    if restricted_by_apparmor(section):
        return _allowed_by_apparmor(section)
    if section.ok:
        return (
            True if "asked as root" not in section.lines or "user/max_user_namespaces" in switches else None
        )
    return False if any(line.startswith("unshare: ") for line in section.lines) else None


def restricted_by_apparmor(section: Section) -> bool:
    """Tell whether AppArmor forbids user namespaces to programs without a profile that allows them."""
    return _switches(section).get("kernel/apparmor_restrict_unprivileged_userns") == "1"


def _switches(section: Section) -> dict[str, str]:
    return dict(_switch(line) for line in section.lines if " = " in line)


def _allowed_by_apparmor(section: Section) -> bool | None:
    if any(section.values("profile")):
        return True
    return False if "profiles read" in section.lines else None


def _switch(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" = ")
    return name.strip(), value.strip()
