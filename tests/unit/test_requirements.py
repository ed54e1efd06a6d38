"""Test the locks of toolkit's dependencies: they fit the metadata, have hashes, and contain no address."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from tests.unit.tables import every_row
from toolkit import DISTRIBUTION

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"([a-z0-9-]+)==(\S+)(?: ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def text_of(name: str) -> str:
    return (ROOT / "requirements" / name).read_text()


def pins(name: str) -> dict[str, list[Version]]:
    """Return the versions of each package in a lock: several if Python releases need different versions."""
    found = defaultdict(list)
    for package, version, _ in PIN.findall(text_of(name)):
        found[package].append(Version(version))
    return found


def wanted(name: str) -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + (extras["dev"] + extras["docs"] if name == "dev.txt" else [])
    return [Requirement(line) for line in lines if not line.startswith(f"{DISTRIBUTION}[")]


@every_row("name", ["run.txt", "dev.txt"])
def test_a_lock_is_made_of_pins_with_hashes_alone(name: str) -> None:
    assert PIN.sub("", text_of(name)) == ""


@every_row("name", ["run.txt", "dev.txt"])
def test_a_lock_fits_the_metadata(name: str) -> None:
    locked = pins(name)
    wrong = [
        f"{need}: locked {[str(v) for v in locked.get(need.name.lower(), [])]}"
        for need in wanted(name)
        if not locked.get(need.name.lower())
        or not all(v in need.specifier for v in locked[need.name.lower()])
    ]
    assert not wrong


def test_both_locks_agree() -> None:
    run, dev = pins("run.txt"), pins("dev.txt")
    assert {name: dev.get(name) for name in run} == dict(run)
