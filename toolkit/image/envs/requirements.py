"""Read the requirements of an environment from requirements files, ``pyproject.toml`` or conda files."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.image.envs.conda import of_conda

_MOST = 4 << 20
_DEEPEST = 8
_HASH = re.compile(r"\s--hash[= ](\S+)")
_COMMENT = re.compile(r"(^|\s)#.*$")
_INDEX = {"-i": "--default-index", "--index-url": "--default-index", "--extra-index-url": "--index"}
_LINKS = ("-f", "--find-links")
_PATH = re.compile(r"[./~]|file:")


class EnvRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements and constraints of an environment, as lines such as ``torch>=2.1`` (PEP 508).

    ``options`` are options for uv. ``hashes`` maps the name of a package to its allowed hashes.
    ``code_folders`` are folders with code of the user's own projects; the environment does not contain this
    code, so jobs read it from these folders. ``omissions`` maps each omitted requirement to the reason.
    """

    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    hashes: dict[str, tuple[str, ...]] = {}
    code_folders: tuple[str, ...] = ()
    omissions: dict[str, str] = {}

    def join(self, addition: "EnvRequirements") -> "EnvRequirements":
        """Return one object with the entries of this object and of ``addition``. If both contain
        hashes for the same package, or a reason for the same omitted requirement, the entry of ``addition``
        applies.
        """
        return EnvRequirements(
            requirements=tuple(dict.fromkeys((*self.requirements, *addition.requirements))),
            constraints=tuple(dict.fromkeys((*self.constraints, *addition.constraints))),
            options=tuple(_pairs((*self.options, *addition.options))),
            hashes={**self.hashes, **addition.hashes},
            code_folders=tuple(dict.fromkeys((*self.code_folders, *addition.code_folders))),
            omissions={**self.omissions, **addition.omissions},
        )


def read_requirements(path: Path) -> EnvRequirements:
    """Return the requirements in a requirements file, ``pyproject.toml``, ``uv.lock`` or a conda file.

    Raises:
        BadInput: if toolkit cannot read the file, or does not support a line; the message quotes the line.
    """
    if path.name == "uv.lock":
        from toolkit.run.packages.environment import export_lock

        project = _project(path.with_name("pyproject.toml"))
        lines = export_lock(path).decode("utf-8", "replace")
        return EnvRequirements(code_folders=project.code_folders).join(_requirements(lines, path, 0))
    if path.suffix == ".toml":
        return _project(path)
    text = read_given(path, limit=_MOST, label="-f").decode("utf-8", "replace")
    if path.suffix in {".yml", ".yaml"}:
        return _conda(text, path)
    return _requirements(text, path, 0)


def parse_requirement(line: str, source: str) -> Requirement:
    """Parse one requirement. Error messages begin with ``source``, which names the place of the
    requirement, for example ``-f requirements.txt:3``.

    Raises:
        BadInput: if the line is not a valid requirement.
    """
    try:
        return Requirement(line)
    except InvalidRequirement as error:
        why = str(error).splitlines()[0]
        raise BadInput(f"{source}: {line!r} is not a requirement: {why}") from error


def _conda(text: str, path: Path) -> EnvRequirements:
    conda = of_conda(text, str(path))
    lines = _requirements("\n".join(conda.pip), path, 0)
    return EnvRequirements(requirements=conda.requirements, omissions=conda.omissions).join(lines)


def _project(path: Path) -> EnvRequirements:
    """Return the dependencies of a project, and the folder of the project's own code."""
    text = read_given(path, limit=_MOST, label="-f")
    try:
        table = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"-f {path}: {error}") from error
    project = table.get("project")
    if not isinstance(project, dict):
        raise BadInput(f"-f {path}: the table [project] is missing", fix="give a requirements file")
    if "dependencies" in project.get("dynamic", ()):
        raise BadInput(
            f"-f {path}: the dependencies are dynamic: the project's build back end computes them",
            fix="write the dependencies into a file: `uv pip compile pyproject.toml -o requirements.txt`",
        )
    lines = project.get("dependencies", [])
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise BadInput(f"-f {path}: project.dependencies is not a list of strings")
    for line in lines:
        parse_requirement(line, f"-f {path}")
    return EnvRequirements(requirements=tuple(lines), code_folders=(_code_of(path.resolve().parent),))


def _code_of(folder: Path) -> str:
    """Return the folder from which Python imports the packages of a project."""
    return str(folder / "src" if (folder / "src").is_dir() else folder)


def _requirements(text: str, path: Path, depth: int) -> EnvRequirements:
    requirements = EnvRequirements()
    for number, line in _lines(text):
        requirements = requirements.join(_line(line, f"-f {path}:{number}", path, depth))
    return requirements


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line, except comments and empty lines. A line that ends with a
    backslash continues on the next line.
    """
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        bare = _COMMENT.sub("", line).strip()
        first = first or number
        if bare.endswith("\\"):
            joined += f"{bare[:-1]} "
            continue
        if whole := (joined + bare).strip():
            yield first, whole
        joined, first = "", 0


def _line(line: str, source: str, path: Path, depth: int) -> EnvRequirements:
    if line.startswith("-"):
        return _option(line, source, path, depth)
    hashes = tuple(_HASH.findall(line))
    bare = _HASH.sub("", line).strip()
    if _PATH.match(bare):
        return _outside(bare, source, path)
    wanted = parse_requirement(bare, source)
    if wanted.url and wanted.url.startswith("file:"):
        return _outside(wanted.url, source, path)
    named = {str(canonicalize_name(wanted.name)): hashes} if hashes else {}
    return EnvRequirements(requirements=(bare,), hashes=named)


def _option(line: str, source: str, path: Path, depth: int) -> EnvRequirements:
    words = shlex.split(line.replace("=", " ", 1) if line.startswith("--") else line)
    name, value = words[0], " ".join(words[1:])
    if len(name) > 2 and not name.startswith("--"):
        name, value = name[:2], name[2:]
    match name:
        case "-r" | "--requirement" | "-c" | "--constraint" if depth < _DEEPEST:
            file = path.parent / value
            text = read_given(file, limit=_MOST, label=source).decode("utf-8", "replace")
            requirements = _requirements(text, file, depth + 1)
            return (
                requirements
                if name in {"-r", "--requirement"}
                else EnvRequirements(constraints=requirements.requirements)
            )
        case "-e" | "--editable":
            return _outside(value, source, path)
        case "--pre":
            return EnvRequirements(options=("--prerelease", "allow"))
        case _ if name in _INDEX:
            return EnvRequirements(options=(_INDEX[name], value))
        case _ if name in _LINKS:
            local = path.parent / value
            return EnvRequirements(
                options=("--find-links", str(local.resolve()) if local.is_dir() else value)
            )
        case "--only-binary" | "--prefer-binary" | "--require-hashes" | "--no-build-isolation":
            return EnvRequirements()
    raise BadInput(f"{source}: `{name}` is an option that toolkit does not support", fix="remove the line")


def _outside(requirement: str, source: str, path: Path) -> EnvRequirements:
    """Return the dependencies of a project. ``requirement`` is the project's folder as the user wrote it
    in the file ``path``, for example ``../lib[test]``. In the result, ``code_folders`` contains the folder
    with the project's code.
    """
    bare = requirement.partition("[")[0].removeprefix("file://").removeprefix("file:")
    folder = (path.parent / Path(bare).expanduser()).resolve()
    if not folder.is_dir():
        raise BadInput(
            f"{source}: {requirement} is not a folder",
            fix="give the folder of the Python project, which contains its pyproject.toml",
        )
    project = folder / "pyproject.toml"
    if project.is_file():
        return _project(project)
    if (folder / "requirements.txt").is_file():
        more = read_requirements(folder / "requirements.txt")
        return more.join(EnvRequirements(code_folders=(_code_of(folder),)))
    return EnvRequirements(code_folders=(_code_of(folder),))


def _pairs(options: Iterable[str]) -> Iterator[str]:
    """Yield each option and its value, without repeated pairs."""
    words = iter(options)
    for pair in dict.fromkeys(zip(words, words, strict=True)):
        yield from pair
