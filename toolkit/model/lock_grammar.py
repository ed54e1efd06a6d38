"""Check the grammar of a lock: the allowed values of each field.

toolkit writes the fields of a lock into paths, commands and Dockerfiles. A lock may be from an author whom
toolkit cannot trust, so toolkit checks each field first.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from toolkit.model.lock import SCHEMA, Lock, LockedBase, LockedFile, LockedStep
from toolkit.model.recipe import LONGEST_LINE, OPERATIONS
from toolkit.model.solution import Solution

_MOST_BYTES = 1 << 40
_SECONDS_LIMIT = 1 << 32
"""Times in seconds since 1970 must be smaller than this number: squashfs stores times in 32 bits."""
_LONGEST_TEXT = 2000
_SHOWN = 60

_HEX = re.compile(r"[0-9a-f]{64}")
# A valid file name is one path component, and starts neither with a dash nor with a dot.
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:%@=-]{0,199}")
_RECIPE = re.compile(r"(?=.{1,100}\Z)[a-z0-9]+(?:[._-][a-z0-9]+)*")
_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,99}")
_DEBIAN_VERSION = re.compile(r"(?:[0-9]{1,9}:)?[0-9][A-Za-z0-9.+~-]{0,99}")
_PYTHON_NAME = re.compile(r"(?=.{1,100}\Z)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PYTHON_VERSION = re.compile(r"[A-Za-z0-9.!+_-]{1,100}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+:~!_-]{0,99}")
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,49}")
_BASE = re.compile(r"[a-z0-9][a-z0-9.-]{0,49}:[a-z0-9][a-z0-9._-]{0,49}")
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_NAME_OF_IMAGE = (
    rf"(?=.{{1,400}}\Z)(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{{1,5}})?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
)
_IMAGE = re.compile(_NAME_OF_IMAGE)
_REFERENCE = re.compile(rf"{_NAME_OF_IMAGE}@sha256:[0-9a-f]{{64}}")
_POOL = re.compile(r"(?=.{1,400}\Z)debian(?:-security)?:pool(?:/[A-Za-z0-9][A-Za-z0-9._+~:%-]*)+")
_INDEX = re.compile(r"index:[0-9]{1,2}\.[0-9]{1,3}")
_HTTPS = re.compile(
    r"(?=.{1,2000}\Z)https://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?)"
    r"/[A-Za-z0-9._~%!&'()*+,;=:@/?-]*"
)
# A configure script may get only options that select parts of a program.
# Words such as CC= are not allowed, because they name commands that configure would run.
_OPTION = re.compile(
    r"--(?:with|without|enable|disable)-[a-z0-9]+(?:-[a-z0-9]+)*(?:=[A-Za-z0-9._/,+-]{1,200})?"
)
# A lock must not set PATH or LD_…, because these variables change which programs and libraries run.
# toolkit itself sets PATH.
_VARIABLE = re.compile(r"(?!PATH\Z|LD_)[A-Z][A-Z0-9_]{0,99}")
_SETTING = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")


class _Rule(NamedTuple):
    """A rule for a field: ``test`` is true if the field's value is allowed; ``expected`` describes the
    allowed values in a message.
    """

    test: Callable[[str], object]
    expected: str


def _is_python_version(text: str) -> bool:
    try:
        return bool(_PYTHON_VERSION.fullmatch(text)) and bool(Version(text))
    except InvalidVersion:
        return False


def _is_origin(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in (_POOL, _INDEX, _HTTPS))


_SHA256 = _Rule(_HEX.fullmatch, "64 lower-case hexadecimal digits")
_FILE_NAME = _Rule(_FILE.fullmatch, "a file name of letters, digits and ._+~:%@=-")
_ORIGIN = _Rule(_is_origin, "debian:pool/…, debian-security:pool/…, index:3.11 or an https:// address")
_RECIPE_NAME = _Rule(_RECIPE.fullmatch, "a recipe name of lower-case letters, digits and ._-")
_ANY_VERSION = _Rule(_VERSION.fullmatch, "a version of letters, digits and .+:~!_-")
_TITLE = _Rule(
    lambda text: len(text) <= LONGEST_LINE and text.isprintable(),
    f"one line of printable text, at most {LONGEST_LINE} characters",
)
_TEXT = _Rule(
    lambda text: len(text) <= _LONGEST_TEXT and text.isprintable(),
    f"one line of printable text, at most {_LONGEST_TEXT} characters",
)

# Sources: Debian Policy 5.6.1 and 5.6.12; PyPA's rules for names, and PEP 440.
_DEBIAN = (
    _Rule(_DEBIAN_NAME.fullmatch, "the name of a Debian package"),
    _Rule(_DEBIAN_VERSION.fullmatch, "the version of a Debian package"),
    ".deb",
)
_WHEEL = (
    _Rule(_PYTHON_NAME.fullmatch, "the name of a Python package"),
    _Rule(_is_python_version, "the version of a Python package (PEP 440)"),
    ".whl",
)
_SOURCE = (_Rule(_PYTHON_NAME.fullmatch, "a component name of letters, digits and ._-"), _ANY_VERSION, "")

_NAME_OF_VARIABLE = _Rule(_VARIABLE.fullmatch, "an upper-case variable name other than PATH and LD_…")
_VALUE_OF_VARIABLE = _Rule(_SETTING.fullmatch, "one word of letters, digits and ._-")
_IDENTIFIER = _Rule(_LICENCE.fullmatch, "an identifier of the SPDX list, or a LicenseRef")
_PATCH = _Rule(
    re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*\.patch").fullmatch, "a lower-case file name such as NAME.patch"
)
_CONFIGURE = _Rule(
    _OPTION.fullmatch, "a configure option such as --with-NAME, --without-NAME or --enable-NAME=VALUE"
)
_WORDS = {
    "horovod": _Rule(OPERATIONS.__contains__, f"one of {', '.join(OPERATIONS)}"),
    "mpi4py": _Rule(().__contains__, "no options"),
}


def faults(lock: Lock) -> Iterator[str]:
    """Yield a message for each fault of a lock, such as ``base.packages[3].sha256: expected …, found …``."""
    yield from _wrong("schema", lock.schema, _Rule(SCHEMA.__eq__, SCHEMA))
    yield from _wrong("recipe", lock.recipe, _RECIPE_NAME)
    yield from _wrong("recipe_sha256", lock.recipe_sha256, _SHA256)
    yield from _wrong("title", lock.title, _TITLE)
    for number, package in enumerate(lock.packages):
        yield from _wrong(f"packages[{number}]", package, _WHEEL[0])
    yield from _of_solution(lock.solution)
    yield from _number("epoch", lock.epoch, _SECONDS_LIMIT)
    yield from _of_base(lock.base, lock.solution)
    for number, step in enumerate(lock.steps):
        yield from _of_step(f"steps[{number}]", step, lock, lock.steps[:number])
    for name, value in lock.environment.items():
        yield from _wrong("environment", name, _NAME_OF_VARIABLE)
        yield from _wrong(f"environment[{quote_value(name)}]", value, _VALUE_OF_VARIABLE)
    for component, licence in lock.licences.items():
        yield from _wrong(
            "licences", component, _Rule(_WORD.fullmatch, "one word of lower-case letters, digits, _ and -")
        )
        yield from _wrong(f"licences.{component}", licence, _IDENTIFIER)
    for path, stage in (("build", lock.build), ("run", lock.run)):
        kinds = (("debian", stage.debian, _DEBIAN), ("wheels", stage.wheels, _WHEEL))
        for kind, files, rules in (*kinds, ("sources", stage.sources, _SOURCE)):
            for number, file in enumerate(files):
                yield from _of_file(f"{path}.{kind}[{number}]", file, *rules)


def file_faults(file: LockedFile) -> Iterator[str]:
    """Yield a message for each fault in the file name, the hash or the size of a file. toolkit uses the file
    name in paths and addresses.
    """
    yield from _wrong("file", file.file, _FILE_NAME)
    yield from _wrong("sha256", file.sha256, _SHA256)
    yield from _number("size", file.size, _MOST_BYTES)


def address_host(origin: str) -> str:
    """Return the host and, if given, the port of an origin that is an https address.

    The result is in lower case. The result is empty if the origin is not an https address.
    """
    found = _HTTPS.fullmatch(origin)
    return found["host"].lower() if found else ""


def quote_value(text: str) -> str:
    """Return a value of a lock for use in a message: in quotes, shortened, and with control characters
    escaped.
    """
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _of_solution(solution: Solution) -> Iterator[str]:
    word = _Rule(_WORD.fullmatch, "one word of lower-case letters, digits, _ and -")
    yield from _wrong(
        "solution.schema", solution.schema, _Rule("toolkit.solution/1".__eq__, "toolkit.solution/1")
    )
    yield from _wrong("solution.recipe", solution.recipe, _RECIPE_NAME)
    yield from _wrong("solution.architecture", solution.architecture, word)
    if solution.mode is not None:
        yield from _wrong("solution.mode", solution.mode, word)
    for number, chosen in enumerate(solution.chosen):
        path = f"solution.chosen[{number}]"
        yield from _wrong(f"{path}.component", chosen.component, word)
        yield from _wrong(f"{path}.version", chosen.version, _ANY_VERSION)
        yield from _wrong(f"{path}.why", chosen.why, _TEXT)
        yield from _wrong(f"{path}.source", chosen.source, _TEXT)


def _of_base(base: LockedBase, solution: Solution) -> Iterator[str]:
    yield from _wrong("base.name", base.name, _Rule(_BASE.fullmatch, "a base image such as debian:bookworm"))
    yield from _wrong(
        "base.release", base.release, _Rule(_WORD.fullmatch, "the codename of a release, such as bookworm")
    )
    yield from _wrong(
        "base.image", base.image, _Rule(_IMAGE.fullmatch, "an image reference without a digest")
    )
    if base.published or not base.packages:
        reference = _Rule(
            _REFERENCE.fullmatch, "an image reference with its digest (required if base.packages is empty)"
        )
        yield from _wrong("base.published", base.published, reference)
    if base.name not in [c.version for c in solution.chosen if c.component == "base"]:
        expected = "the version of the component `base` in solution.chosen"
        yield f"base.name: expected {expected}, found {quote_value(base.name)}"
    if not base.published and any(chosen.provider == "published" for chosen in solution.chosen):
        expected = "an image reference (solution.chosen takes components from a published image)"
        yield f"base.published: expected {expected}, found none"
    for number, file in enumerate(base.packages):
        yield from _of_file(f"base.packages[{number}]", file, *_DEBIAN)


def _of_step(path: str, step: LockedStep, lock: Lock, earlier_steps: Sequence[LockedStep]) -> Iterator[str]:
    """Yield a message for each fault of a step, such as an option that is not allowed, or the name of a file
    that is not in the lock. ``earlier_steps`` are the steps before ``step`` in the lock.
    """
    before = {step.component for step in earlier_steps}
    sources = _Rule(
        {file.name for file in lock.build.sources}.__contains__, "the name of an archive in build.sources"
    )
    wheels = _Rule({file.name for file in lock.run.wheels}.__contains__, "the name of a wheel in run.wheels")
    if step.component in before:
        expected = "one step for each component"
        yield f"{path}.component: expected {expected}, found a second step for {step.component}"
    yield from _wrong(f"{path}.component", step.component, sources)
    for number, word in enumerate(step.words):
        yield from _wrong(f"{path}.words[{number}]", word, _WORDS.get(step.component, _CONFIGURE))
    for number, other in enumerate(step.after):
        yield from _wrong(
            f"{path}.after[{number}]", other, _Rule(before.__contains__, "the component of an earlier step")
        )
    for number, name in enumerate(step.wheels):
        yield from _wrong(f"{path}.wheels[{number}]", name, wheels)
    for name, digest in step.patches.items():
        yield from _wrong(f"{path}.patches", name, _PATCH)
        yield from _wrong(f"{path}.patches[{quote_value(name)}]", digest, _SHA256)
    for number, helper in enumerate(step.extra):
        yield from _wrong(f"{path}.extra[{number}]", helper, sources)


def _of_file(path: str, file: LockedFile, name: _Rule, version: _Rule, ending: str) -> Iterator[str]:
    yield from _wrong(f"{path}.name", file.name, name)
    yield from _wrong(f"{path}.version", file.version, version)
    yield from _wrong(f"{path}.origin", file.origin, _ORIGIN)
    yield from (f"{path}.{fault}" for fault in file_faults(file))
    if not file.file.endswith(ending):
        yield f"{path}.file: expected a name that ends in {ending}, found {quote_value(file.file)}"


def _wrong(path: str, text: str, rule: _Rule) -> Iterator[str]:
    if not rule.test(text):
        yield f"{path}: expected {rule.expected}, found {quote_value(text)}"


def _number(path: str, number: int, limit: int) -> Iterator[str]:
    if not 0 <= number < limit:
        found = "a negative number" if number < 0 else "a larger number"
        yield f"{path}: expected a number from 0 to {limit - 1}, found {found}"
