"""Find package files in package indexes, for any version of Python. uv resolves the requirements, and
installs no packages.
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
    label: str,
    indexes: Sequence[str] = (),
) -> bytes:
    """Return the text of a ``pylock.toml`` with the wheels of the requirements and of all their dependencies.

    ``python`` is a Python version such as ``3.11``. ``platform`` is uv's name of a platform, such as
    ``x86_64-manylinux_2_36``. ``label`` names the requirements in error messages. uv searches the package
    indexes at the addresses ``indexes`` and the indexes in the user's pip configuration. uv chooses the best
    version from all indexes, as pip does.

    Raises:
        CheckFailed: if no set of packages satisfies the requirements. The error contains uv's reasons.
        Missing: if uv is not installed, or uv's cache is not writable.
    """
    options = ("--only-binary", ":all:", "--python-version", python, "--python-platform", platform)
    return _compile_requirements(requirements, constraints, options, label, indexes)


def sources(requirements: Sequence[str], *, python: str, label: str) -> bytes:
    """Return the text of a ``pylock.toml`` with the source distributions of the requirements, without wheels
    and without dependencies. ``python`` is a Python version. ``label`` names the requirements in
    error messages.

    Raises:
        CheckFailed: if a requirement has no source distribution. The error contains uv's reasons.
        Missing: if uv is not installed, or uv's cache is not writable.
    """
    options = ("--no-deps", "--no-binary", ":all:", "--python-version", python)
    return _compile_requirements(requirements, (), options, label)


def lock_all_files(pins: Sequence[str], *, python: str, index: str | None = None) -> bytes:
    """Return the text of a ``pylock.toml`` that lists every file of the pinned releases for the Python
    version ``python``.

    ``index`` is the address of the only index that uv searches; an empty string means the default index. If
    ``index`` is ``None``, uv searches all configured indexes. If several indexes have the same release, uv
    lists only the files in one of these indexes.

    Raises:
        CheckFailed: if a release does not exist. The error contains uv's reasons.
        Missing: if uv is not installed, or uv's cache is not writable.
    """
    options = ("--no-deps", "--universal", "--python-version", python)
    return _compile_requirements(pins, (), options, "the addresses of wheels", index=index)


def _compile_requirements(
    requirements: Sequence[str],
    constraints: Sequence[str],
    options: tuple[str, ...],
    label: str,
    indexes: Sequence[str] = (),
    index: str | None = None,
) -> bytes:
    cache = uv_cache()
    places = tuple(uv_places(indexes)) if index is None else ("--default-index", index) if index else ()
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
            f"resolving {label}",
            "read uv's reason to find the requirements that contradict each other, and change the recipe",
        )
        return out.read_bytes()


def uv_cache() -> str:
    """Return the folder of uv's cache.

    Raises:
        Missing: if the folder is not writable. Without this check, uv would report a missing wheel instead.
    """
    return str(in_cache("uv"))


def uv_places(indexes: Sequence[str]) -> Iterator[str]:
    """Yield uv's options for the package indexes ``indexes``, and for the package sources in the user's pip
    configuration. If the pip configuration has ``no-index``, omit all indexes.
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
            "uv is not installed in toolkit's Python environment; toolkit resolves Python packages with uv",
            fix="install uv in this environment: `pip install 'uv>=0.8'`",
        ) from error
    return str(uv.find_uv_bin())


def uv_settings() -> dict[str, str]:
    """Return the environment variables that toolkit sets for uv.

    UV_DEFAULT_INDEX is the user's index for pip. With UV_SYSTEM_CERTS, uv trusts the machine's certificates,
    as pip does; earlier releases of uv read UV_NATIVE_TLS instead. UV_PYTHON_DOWNLOADS=never keeps uv from
    searching the network for the image's Python version. Without this variable, each call of uv takes more
    than 10 s on a machine without a network.
    """
    index = pip_places().index
    settings = {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true", "UV_PYTHON_DOWNLOADS": "never"}
    return settings | ({"UV_DEFAULT_INDEX": index} if index else {})
