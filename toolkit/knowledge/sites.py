"""Find and read site profiles, by path or by name.

toolkit looks up a name in the user's folder ``sites``, and then in toolkit's own folders.
"""

import contextlib
import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from toolkit.ambient import require_trusted
from toolkit.data import config_dir, shipped_folder
from toolkit.errors import BadInput
from toolkit.folders import at_home, no_file
from toolkit.knowledge.sitefields import objections
from toolkit.knowledge.strict import field_error, shape, tables, text_of
from toolkit.model.site import Site
from toolkit.near import suggest_near

SUFFIX = ".toml"
_EXAMPLE = "example"
"""Name of the example profile, which shows every key but describes no cluster."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def own_folder() -> Path:
    """Return the folder of the user's own profiles; the folder may not exist."""
    return config_dir() / "sites"


def names(*, historic: bool = False) -> tuple[str, ...]:
    """Return the names of the user's own profiles and of toolkit's profiles, without the example profile.

    If ``historic`` is true, the result also contains the profiles of machines that are out of service.
    """
    folders = _folders() if historic else _folders()[:2]
    found = {file.name.removesuffix(SUFFIX) for folder in folders for file in folder.glob(f"*{SUFFIX}")}
    return tuple(sorted(name for name in found if name != _EXAMPLE and _NAME.fullmatch(name)))


def find(name: str) -> Path:
    """Return the path of the profile with the name ``name``. If ``name`` is a path, return this path.

    Raises:
        BadInput: the profile does not exist, or it is in the user's folder and other users can write to the
            file. For an unknown name, the message lists the known names.
    """
    if "/" in name or name.endswith(SUFFIX):
        why = "no such file"
        with contextlib.suppress(OSError):  # raised if the name is too long or invalid for a file
            if (path := Path(name)).is_file():
                return path
            why = no_file(path)
        raise BadInput(f"{name if name.isprintable() else repr(name)}: {why}")
    if _NAME.fullmatch(name):
        for folder in _folders():
            if (candidate := folder / f"{name}{SUFFIX}").is_file():
                if folder == own_folder():
                    require_trusted(candidate, "give the path of the profile instead of its name")
                return candidate
    known = names(historic=True)
    raise BadInput(
        f"site {name!r}: not found{suggest_near(name, known)}; choices: {', '.join(known) or 'none'}",
        fix="write a profile of your cluster: `toolkit init`",
    )


def facts_file(name: str) -> Path:
    """Return the path of the file with the probed facts about a site; the file may not exist.

    The file is in the folder of the site profile.

    Raises:
        BadInput: the site does not exist (the message lists the choices), or other users can write to the
            facts file.
    """
    file = find(name).with_suffix(".facts.json")
    if file.parent == own_folder() and file.is_file():
        require_trusted(file)
    return file


def site(name: str) -> Site:
    """Return the site profile with the given name or path; ``verify_key`` becomes an absolute path.

    Raises:
        BadInput: the profile does not exist or is invalid. For an invalid profile, the message names file,
            line, field and valid choices.
    """
    path = find(name)
    found = parse(text_of(path), str(path))
    if not found.image.verify_key:
        return found
    key = path.absolute().parent / at_home(found.image.verify_key)
    return msgspec.structs.replace(found, image=msgspec.structs.replace(found.image, verify_key=str(key)))


def parse(text: str, file: str) -> Site:
    """Parse the text of a profile; error messages name ``file``.

    Raises:
        BadInput: the profile is invalid; the message names file, line, field and valid choices.
    """
    raw = tables(text, file)
    try:
        found = msgspec.convert(raw, Site)
    except msgspec.ValidationError as error:
        raise field_error(shape(str(error), Site), text, file) from error
    for objection in objections(found):
        raise field_error(objection, text, file)
    return found


def checked_name(name: str) -> str:
    """Return ``name`` if it is a valid name for a profile.

    Raises:
        BadInput: the name is not valid.
    """
    if not _NAME.fullmatch(name) or name.endswith(SUFFIX) or name == _EXAMPLE:
        raise BadInput(
            f"{name!r} is not a valid name for a site",
            fix="use at most 64 letters, digits, dots, dashes and _, and start with a letter or digit; "
            f"do not use the name `{_EXAMPLE}` or a name that ends in `{SUFFIX}`",
        )
    return name


def today() -> str:
    """Return today's date in UTC, in the format of profiles: ``2026-11-25``."""
    return datetime.now(UTC).date().isoformat()


def is_old(site: Site, day: str) -> bool:
    """Return whether a profile has expired on ``day``, a date such as ``2026-11-25``.

    The documents on which an expired profile is based may have changed.
    """
    return bool(site.expires) and day >= site.expires


def _folders() -> tuple[Path, Path, Path]:
    shipped_ones = shipped_folder("slurm") / "sites"
    return own_folder(), shipped_ones, shipped_ones / "historic"
