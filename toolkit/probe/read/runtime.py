"""Find out whether users without privileges can start containers and mount images."""

from toolkit.probe.evidence import Section


def user_namespaces(section: Section) -> bool | None:
    """Return whether an ordinary user can create a user namespace, or None if unknown.

    The probe runs ``unshare -Ur true``. If ``unshare`` is missing, the kernel's settings can show that user
    namespaces are disabled, but not that user namespaces work. If root ran the probe, the success of
    ``unshare`` does not show that other users succeed. In this case, the result is true if the kernel reports
    a ``user.max_user_namespaces`` greater than 0, and None if the kernel does not report this setting.

    If AppArmor restricts user namespaces (Ubuntu 24.04), only programs with a suitable profile can create a
    user namespace. Apptainer's package has a suitable AppArmor profile, but ``unshare`` does not.
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
    """Return the maximum number of user namespaces per user, or None if the kernel reports no number."""
    text = _switches(section).get("user/max_user_namespaces", "")
    return int(text) if text.isdecimal() else None


def kernel_mounts(section: Section) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return two lists of kernel features for mounting images: the available features and the missing
    features.

    The features are ``loop`` and ``squashfs``. The result is None if the state of a feature is unknown.
    """
    has = tuple(line.partition(":")[0] for line in section.values("has"))
    lacks = section.values("lacks")
    return (has, lacks) if {*has, *lacks} == {"loop", "squashfs"} else None


def restricted_by_apparmor(section: Section) -> bool:
    """Return whether AppArmor denies user namespaces to programs without a suitable profile."""
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
