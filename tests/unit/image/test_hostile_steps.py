"""Test that toolkit refuses hostile steps, variables and licences in a lock before it uses them."""

import json

import pytest
from click.testing import CliRunner

from tests.unit.image.hostile import changed
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.image.locks.lock import decode_lock

LOCK = json.loads((shipped_folder("recipes") / "tf2.15-ompi-source-cpu.lock.json").read_bytes())
OPENMPI, HOROVOD = 2, 4

EVIL = ("x\nRUN evil", "--with-x\0", "--with-x;evil", "--with-x=$(evil)", "--with-x='a'", "--with-x=a b", "")

FIELDS = (
    *((("steps", OPENMPI, "words", 0), text, "a configure option such as --with-NAME") for text in EVIL),
    (("steps", OPENMPI, "words", 0), "CC=evil", "a configure option such as --with-NAME"),
    (("steps", OPENMPI, "words", 0), "--cache-file=/evil", "a configure option such as --with-NAME"),
    (("steps", HOROVOD, "words", 0), "nccl;evil", "one of mpi, gloo, nccl"),
    (("steps", HOROVOD, "words", 0), "--with-x", "one of mpi, gloo, nccl"),
    (("steps", 3, "words"), ["--with-x"], "no options"),
    (("steps", OPENMPI, "component"), "evil", "Invalid enum value 'evil'"),
    (("steps", OPENMPI, "component"), "slim", "Invalid enum value 'slim'"),
    (("steps", OPENMPI, "component"), "../evil", "Invalid enum value '../evil'"),
    (("steps", OPENMPI, "component"), "ucx", "one step for each component, found a second step for ucx"),
    (("steps", OPENMPI, "after", 0), "horovod", "an earlier step"),
    (("steps", OPENMPI, "after", 0), "x\nRUN evil", "Invalid enum value"),
    (("steps", HOROVOD, "wheels", 0), "x;evil", "the name of a wheel in run.wheels"),
    (("steps", HOROVOD, "wheels", 0), "x\nevil", "the name of a wheel in run.wheels"),
    (("steps", HOROVOD, "extra"), ["cuda"], "an archive in build.sources"),
    (("steps", HOROVOD, "extra"), ["evil;"], "Invalid enum value"),
    (("steps", HOROVOD, "evil"), "x", "unknown field `evil`"),
    (("environment",), {"A=b\nRUN evil": "1"}, "an upper-case variable name"),
    (("environment",), {"A;evil": "1"}, "an upper-case variable name"),
    (("environment",), {"A\0": "1"}, "an upper-case variable name"),
    (("environment",), {"PATH": "evil"}, "an upper-case variable name other than PATH"),
    (("environment",), {"LD_PRELOAD": "evil"}, "an upper-case variable name other than PATH"),
    *(
        (("environment",), {"A": text}, "one word of letters")
        for text in ("1\nRUN evil", "1\0", "1;evil", "$A")
    ),
    (("licences", "openmpi"), "MIT\nevil", "an identifier of the SPDX list"),
    (("licences", "openmpi"), "MIT;evil", "an identifier of the SPDX list"),
    (("licences",), {"../evil": "MIT"}, "licences: expected one word"),
    (
        ("steps", HOROVOD, "patches"),
        {"../evil.patch": "0" * 64},
        "expected a lower-case file name such as NAME.patch",
    ),
    (("steps", HOROVOD, "patches"), {"evil.patch": "x"}, "64 lower-case hexadecimal digits"),
    (("base", "image"), "x\nRUN evil", "an image reference without a digest"),
    (("base", "image"), "debian:bookworm;evil", "an image reference without a digest"),
    (("solution", "chosen", OPENMPI, "provider"), "published", "base.published: expected an image reference"),
    (("title",), "x\nRUN evil", "one line of printable text"),
    (("title",), "x\0", "one line of printable text"),
    (("title",), "x" * 301, "one line of printable text, at most 300 characters"),
    (("packages",), ["--evil"], "the name of a Python package"),
    (("packages",), ["x;evil"], "the name of a Python package"),
    (("packages",), ["x\nevil"], "the name of a Python package"),
)


def test_the_lock_itself_is_read() -> None:
    assert decode_lock(json.dumps(LOCK).encode(), "x")


@every_row(("path", "value", "expected"), FIELDS)
def test_a_hostile_field_is_refused(path: tuple[str | int, ...], value: object, expected: str) -> None:
    content = json.dumps(set_in(LOCK, path, value)).encode()
    with pytest.raises(BadInput) as caught:
        decode_lock(content, "x")
    assert expected in caught.value.message
    assert caught.value.message.isprintable()


@every_row("field", ["title", "packages", "steps", "environment", "licences"])
def test_a_lock_without_a_field_is_refused(field: str) -> None:
    content = json.dumps({name: value for name, value in LOCK.items() if name != field}).encode()
    with pytest.raises(BadInput, match=f"missing required field `{field}`"):
        decode_lock(content, "x")


def test_a_hostile_step_does_not_reach_the_text_of_a_build(tmp_path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_bytes((shipped_folder("recipes") / "tf2.15-ompi-source-cpu.toml").read_bytes())
    lock = set_in(LOCK, ("steps", OPENMPI, "words", 0), "--with-x;evil")
    (tmp_path / "r.lock.json").write_text(json.dumps(lock))
    done = CliRunner().invoke(command, ["render", str(recipe)], obj={"verbose": False, "quiet": True})
    assert isinstance(done.exception, BadInput)
    assert done.exception.message.startswith(f"{tmp_path}/r.lock.json: steps[2].words[0]: expected ")
    assert "evil" not in done.output


def set_in(lock: object, path: tuple[str | int, ...], value: object) -> object:
    """Return a copy of ``lock`` with ``value`` at ``path``, also if the lock has no such field."""
    *folder, name = path
    here = lock
    for part in folder:
        here = here[part]
    whole = {**here, name: value} if isinstance(here, dict) else [*here[:name], value, *here[name + 1 :]]
    return changed(lock, tuple(folder), whole)
