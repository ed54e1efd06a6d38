"""Test that the page about the architecture agrees with the import contracts and the folders."""

import re
import tomllib

from docs.generate.architecture import PICTURE, layers, picture
from docs.generate.outside import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def modules() -> set[str]:
    first = [cell for cell, *_ in rows("Packages")]
    return {
        name.removeprefix("toolkit/").removesuffix(".py")
        for cell in first
        for name in re.findall("`([^`]+)`", cell)
    }


def test_the_picture_shows_the_contracts_of_today() -> None:
    assert PICTURE.read_text() == picture(layers()), "run: .venv/bin/python -m docs.generate.architecture"


def test_the_table_names_each_module_of_the_layers_and_the_trainers() -> None:
    assert modules() == {name for row in layers() for name in row} | {"trainers"}


def test_every_package_has_a_row() -> None:
    packages = {path.parent.name for path in (ROOT / "toolkit").glob("*/__init__.py")}
    assert packages <= modules()


def test_the_page_names_every_contract() -> None:
    assert [name for name, *_ in rows("Contracts")] == [contract["name"] for contract in CONTRACTS]


def test_the_folders_of_data_exist() -> None:
    named = [name for cell, *_ in rows("Data outside the package") for name in re.findall("`([^`]+)`", cell)]
    assert named
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def test_a_layer_of_many_modules_takes_several_lines() -> None:
    drawn = picture([["a"], ["b", "c", "d", "e", "f", "g"]])
    assert drawn.count("<rect") == 8
    assert (
        len({line.split('y="')[1].split('"')[0] for line in drawn.splitlines() if 'class="box"' in line}) == 3
    )
