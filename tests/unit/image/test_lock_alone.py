"""Test that an image depends only on its lock, and not on today's rows in ``recipes/knowledge``."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolkit.cli.image import command
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.image.builds.context import own_files
from toolkit.image.builds.emit import Making
from toolkit.image.locks.lock import load_lock
from toolkit.image.locks.recipe import load, names
from toolkit.knowledge.licences import licences
from toolkit.knowledge.stacks import stacks

LOCKED = [name for name in names() if load_lock(name)]


@pytest.fixture(scope="module")
def shipped_now() -> dict[str, object]:
    return made()


@pytest.fixture
def knowledge(
    shipped_now: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Make toolkit read its knowledge from an empty folder, and yield the folder."""
    folder = tmp_path / "recipes" / "knowledge"
    folder.mkdir(parents=True)
    monkeypatch.setattr("toolkit.knowledge.reading.shipped_folder", lambda _: folder.parent)
    forget()
    yield folder
    forget()


def forget() -> None:
    stacks.cache_clear()
    licences.cache_clear()


def made() -> dict[str, object]:
    """Return the Dockerfile, the Singularity definition and toolkit's own files for each shipped lock."""
    return {name: (text(name, "docker"), text(name, "singularity"), own(name)) for name in LOCKED}


def text(name: str, kind: str) -> str:
    words = ["render", name, "--format", kind]
    done = CliRunner().invoke(command, words, obj={"verbose": 0, "quiet": 0}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def own(name: str) -> dict[str, bytes | Path]:
    lock = load_lock(name)
    assert lock is not None
    return own_files(Making(lock=lock))


def edit(file: Path, *words: tuple[str, str]) -> None:
    content = file.read_text()
    for before, after in words:
        assert before in content
        content = content.replace(before, after)
    file.write_text(content)


def test_every_shipped_recipe_is_made_with_an_empty_knowledge_folder(
    knowledge: Path, shipped_now: dict[str, object]
) -> None:
    with pytest.raises(BadInput, match=r"stacks\.toml: "):
        stacks()
    assert made() == shipped_now


def test_changed_rows_do_not_change_what_a_lock_makes(
    knowledge: Path, shipped_now: dict[str, object]
) -> None:
    for name in ("components", "stacks", "licences"):
        shutil.copy(shipped_folder("recipes") / "knowledge" / f"{name}.toml", knowledge)
    words = (('"--without-verbs"', '"--with-verbs", "--enable-debug"'), ('"4.1.4"', '"4.1.9"'))
    edit(knowledge / "stacks.toml", *words, ("debian:bookworm-slim", "debian:other"), ('= "1" }', '= "0" }'))
    edit(knowledge / "licences.toml", ('"Apache-2.0"', '"MIT"'))
    assert "4.1.9" in {row.version for row in stacks().rows("openmpi")}
    assert made() == shipped_now


def test_a_base_that_is_unknown_today_is_refused_only_where_a_stack_is_chosen(knowledge: Path) -> None:
    for name in ("components", "stacks"):
        shutil.copy(shipped_folder("recipes") / "knowledge" / f"{name}.toml", knowledge)
    edit(knowledge / "stacks.toml", ('"x86_64"', '"other"'))
    with pytest.raises(BadInput, match="unknown architecture 'x86_64'"):
        load("mpi-only", stacks())
    assert load("mpi-only").name == "mpi-only"
