"""Read whether containers can be started without privileges."""

from toolkit.probe.evidence import Section


def user_namespaces(section: Section) -> bool | None:
    """Return whether an ordinary user may create a user namespace.

    The probe tries ``unshare -Ur true``; without ``unshare`` the kernel's settings can only exclude it.
    Root's success proves nothing for other users, unless the settings exist and allow it. If AppArmor
    restricts user namespaces (Ubuntu 24.04), ``unshare`` shows nothing: only programs with a profile that
    allows it can use them, and Apptainer's package has one for its starter.
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


def namespaces_limit(section: Section) -> int | None:
    """Return how many user namespaces one user may have."""
    said = _switches(section).get("user/max_user_namespaces", "")
    return int(said) if said.isdecimal() else None


def kernel_mounts(section: Section) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what the kernel has for mounting images, and what it lacks; ``None`` if one is unknown."""
    has = tuple(said.partition(":")[0] for said in section.values("has"))
    lacks = section.values("lacks")
    return (has, lacks) if {*has, *lacks} == {"loop", "squashfs"} else None


def restricted_by_apparmor(section: Section) -> bool:
    """Return whether AppArmor forbids user namespaces to programs without a profile that allows them."""
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
