"""Test the Dockerfile that toolkit renders as an outline for a recipe that it cannot build."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.tables import every_row
from toolkit.cli.image import command as image
from toolkit.errors import BadInput
from toolkit.image.builds.context import whole_context
from toolkit.image.builds.emit import Making, definition, dockerfile
from toolkit.image.builds.identity import labels
from toolkit.image.locks.outline import outline_recipe
from toolkit.image.locks.recipe import load, names
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock

UNBUILDABLE = [name for name in names() if load(name).recipe.unbuildable]


def test_there_is_one_for_power_and_one_on_a_published_image() -> None:
    assert set(UNBUILDABLE) >= {"tf2.15-ppc64le", "ngc21.10"}


@every_row("name", UNBUILDABLE)
def test_has_the_published_base_and_no_files_to_install(name: str) -> None:
    lock = outline_recipe(load(name))
    assert lock.base.published == stacks().base_of(lock.base.name).image
    assert not lock.base.packages
    assert not (*lock.run.debian, *lock.run.wheels, *lock.build.debian, *lock.build.wheels)


def test_names_what_has_to_be_compiled_for_power() -> None:
    sources = {file.name: file.version for file in outline_recipe(load("tf2.15-ppc64le")).build.sources}
    assert {"mpi4py", "horovod"} <= set(sources)
    assert sources["horovod"] == outline_recipe(load("tf2.15-ppc64le")).solution.versions["horovod"]


def test_compiles_nothing_on_an_image_that_brings_it() -> None:
    assert outline_recipe(load("ngc21.10")).build.sources == ()


def making(name: str) -> Making:
    named = load(name)
    lock = outline_recipe(named)
    return Making(lock=lock, base=lock.base.published, unbuildable=named.recipe.unbuildable)


@every_row("name", UNBUILDABLE)
def test_every_stage_and_file_of_the_dockerfile_is_there(name: str) -> None:
    made = making(name)
    text = dockerfile(made)
    assert load(name).recipe.unbuildable in text
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    named = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) | set(re.findall(r"--from=(\S+)", text))
    assert named <= stages | {made.lock.base.published, "scratch"}
    placed = {path.split("/")[0] for path in whole_context(made, _files(made.lock))}
    lines = re.findall(r"^COPY ([^-].*) \S+$", text, re.MULTILINE)
    copied = {word.split("/")[0] for line in lines for word in line.split()}
    # Folders for unknown files are empty; a machine that can build the recipe fills them from its own lock.
    assert copied <= placed | {"toolchain", "packages", "strip", "tools"}


def test_an_image_that_brings_everything_keeps_its_environment() -> None:
    made = making("ngc21.10")
    text, recipe = dockerfile(made), definition(made, labels(made), context="", jobs=2)
    assert text.count("FROM ") == 1
    for rendered in (text, recipe):
        assert "PYTHONPATH=/opt/toolkit/lib" in rendered
        assert "PATH=/opt/toolkit/venv" not in rendered
        assert "packages.sh" not in rendered


@every_row("name", UNBUILDABLE)
@every_row("command", ["build", "lock", "render -o {folder}"])
def test_building_it_is_refused_with_the_reason(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = command.format(folder=tmp_path / "new").split()
    monkeypatch.setattr(f"toolkit.cli.image.{words[0]}.connect", lambda: None, raising=False)
    done = CliRunner().invoke(image, [words[0], name, *words[1:]], obj={"verbose": False, "quiet": True})
    assert isinstance(done.exception, BadInput)
    assert load(name).recipe.unbuildable in str(done.exception)
    assert not (tmp_path / "new").exists()


def _files(lock: Lock) -> dict[str, Path]:
    return {file.sha256: Path(file.file) for file in lock.build.sources}
