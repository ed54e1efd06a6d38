"""Find the package indexes and wheel folders that the user configured for pip, in pip's environment variables
and configuration files.
"""

import configparser
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

_TRUE = ("1", "true", "yes", "on")
"""The values of a setting that pip reads as true."""


class PipPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """The package sources of pip: the index, further indexes, and folders with wheels (``find-links``).

    ``index`` is empty if pip has no configured index. The addresses of indexes may contain a login, so
    toolkit never writes these addresses to a lock file. ``no_index`` is true if pip searches only the folders
    in ``links``.
    """

    index: str = ""
    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    no_index: bool = False


def pip_places(env: Mapping[str, str] | None = None) -> PipPlaces:
    """Return the package sources of this user's pip; environment variables override configuration files.

    ``env`` contains the environment variables; ``None`` means the variables of this process. The paths and
    the order of pip's configuration files are from pip's documentation, "Configuration". The function skips
    unreadable configuration files.
    """
    known = os.environ if env is None else env
    settings: dict[str, str] = {}
    for file in _files(known):
        settings |= _global_section(file)
    return PipPlaces(
        index=known.get("PIP_INDEX_URL", settings.get("index-url", "")).strip(),
        indexes=_words(known.get("PIP_EXTRA_INDEX_URL", settings.get("extra-index-url", ""))),
        links=_words(known.get("PIP_FIND_LINKS", settings.get("find-links", ""))),
        no_index=known.get("PIP_NO_INDEX", settings.get("no-index", "")).strip().lower() in _TRUE,
    )


def _files(env: Mapping[str, str]) -> Iterator[Path]:
    home = Path(env.get("HOME", "/nonexistent"))
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    yield from (Path(folder) / "pip/pip.conf" for folder in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"))
    yield Path("/etc/pip.conf")
    yield home / ".pip/pip.conf"
    yield Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    if named:
        yield Path(named)


def _global_section(file: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return {}
    return dict(parser["global"]) if parser.has_section("global") else {}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
