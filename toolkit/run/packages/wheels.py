"""Use uv and the package indexes to find the package files for any version of Python, without installing
packages.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolkit.errors import Missing
from toolkit.run.command import Command
from toolkit.run.folders import in_cache
from toolkit.run.local import LocalRunner
from toolkit.run.packages.pip_config import pip_places

_SECONDS = 300.0


def lock_wheels(
    requirements: Sequence[str],
    constraints: Sequence[str],
    *,
    python: str,
    platform: str,
    what: str,
    indexes: Sequence[str] = (),
) -> bytes:
    """Return the text of a ``pylock.toml`` with the wheels of the requirements and of all their dependencies.

    ``python`` is a Python version such as ``3.11``. ``platform`` is uv's name of a platform, such as
    ``x86_64-manylinux_2_36``. ``what`` is the name for the required packages in error messages. ``indexes``
    are addresses of further package indexes. uv chooses the best version from all indexes, as pip does.

    Raises:
        CheckFailed: if no set of packages satisfies the requirements, with uv's reasons.
        Missing: if uv is not installed, or the cache is not writable.
    """
    options = ("--only-binary", ":all:", "--python-version", python, "--python-platform", platform)
    return _compile_requirements(requirements, constraints, options, what, indexes)


def sources(requirements: Sequence[str], *, python: str, what: str) -> bytes:
    """Return the text of a ``pylock.toml`` with only the source distributions of the requirements. ``what``
    is the name for the packages in error messages.

    Raises:
        CheckFailed: if no set of packages satisfies the requirements, with uv's reasons.
        Missing: if uv is not installed, or the cache is not writable.
    """
    options = ("--no-deps", "--no-binary", ":all:", "--python-version", python)
    return _compile_requirements(requirements, (), options, what)


def lock_all_files(pins: Sequence[str], *, python: str, index: str | None = None) -> bytes:
    """Return the text of a ``pylock.toml`` that lists every file of the pinned releases for the Python
    version ``python``.

    If two package indexes have the same release, uv lists the files of only one index. uv asks only the index
    at the address ``index``; an empty string means the default index. If ``index`` is ``None``, uv asks all
    configured indexes.

    Raises:
        CheckFailed: if a release does not exist, with uv's reasons.
        Missing: if uv is not installed, or the cache is not writable.
    """
    options = ("--no-deps", "--universal", "--python-version", python)
    return _compile_requirements(pins, (), options, "the addresses of wheels", only=index)


def _compile_requirements(
    requirements: Sequence[str],
    constraints: Sequence[str],
    options: tuple[str, ...],
    what: str,
    indexes: Sequence[str] = (),
    only: str | None = None,
) -> bytes:
    cache = uv_cache()
    places = tuple(uv_places(indexes)) if only is None else ("--default-index", only) if only else ()
    with tempfile.TemporaryDirectory(prefix="toolkit-lock.") as work:
        requirements_file, bound, out = (
            Path(work) / name for name in ("asked.in", "bound.txt", "pylock.toml")
        )
        requirements_file.write_text("".join(f"{requirement}\n" for requirement in requirements))
        bound.write_text("".join(f"{constraint}\n" for constraint in constraints))
        words = (
            *(uv_program(), "pip", "compile", "--quiet", "--no-config", "--cache-dir", cache),
            *("--format", "pylock.toml", "--no-header", "--output-file", str(out)),
            *("--constraints", str(bound), *options, *places, str(requirements_file)),
        )
        done = LocalRunner().run(Command(words, env=uv_settings(), timeout=_SECONDS))
        done.require(
            f"resolving {what}", ("read which requirements contradict each other, and change the recipe")
        )
        return out.read_bytes()


def uv_cache() -> str:
    """Return the folder of uv's cache, after a check that it is writable. Without this check, uv would report
    a read-only cache only as a missing wheel.
    """
    return str(in_cache("uv"))


def uv_places(indexes: Sequence[str]) -> Iterator[str]:
    """Yield uv's options for the package indexes ``indexes``, and for the package sources in the user's pip
    configuration.
    """
    places = pip_places()
    if places.no_index:
        yield "--no-index"
    for index in () if places.no_index else (*indexes, *places.indexes):
        yield from ("--index", index)
    for link in places.links:
        yield from ("--find-links", link)
    if indexes or places.indexes:
        yield from ("--index-strategy", "unsafe-best-match")


def uv_program() -> str:
    """Return the path of uv.

    Raises:
        Missing: if uv is not installed in toolkit's Python environment.
    """
    try:
        import uv
    except ImportError as error:
        raise Missing(
            "uv, which resolves wheels, is not installed in toolkit's Python environment",
            fix="install uv in this environment: `pip install 'uv>=0.8'`",
        ) from error
    return str(uv.find_uv_bin())


def uv_settings() -> dict[str, str]:
    """Return the user's pip settings as environment variables of uv. uv itself reads the usual environment
    variables for certificates and proxies.

    With UV_SYSTEM_CERTS, uv trusts the machine's certificates, as pip does (earlier releases of uv read
    UV_NATIVE_TLS). UV_PYTHON_DOWNLOADS=never keeps uv from searching the network for the image's Python
    version. Without UV_PYTHON_DOWNLOADS=never, each call of uv waits for more than 10 s on a machine without
    a network.
    """
    index = pip_places().index
    settings = {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true", "UV_PYTHON_DOWNLOADS": "never"}
    return settings | ({"UV_DEFAULT_INDEX": index} if index else {})
