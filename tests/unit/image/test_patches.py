"""Test the patches in a lock, and how a build applies them to a component's sources."""

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.image.builds.context import compile_context, whole_context
from toolkit.image.builds.emit import Making, dockerfile
from toolkit.image.locks.lock import load_lock
from toolkit.image.locks.patches import patch_sha256, patches_of
from toolkit.image.locks.steps import key_of, steps_of
from toolkit.knowledge.components import components
from toolkit.knowledge.stacks import stacks
from toolkit.model.lock import Lock

PATCHED = "tf2.21-cpu"
NAMED = sorted({name for c in components() for row in stacks().rows(c) for name in row.patches})


def changed(lock: Lock, patches: dict[str, str]) -> Lock:
    """Return a copy of the lock in which the last step has other patches."""
    *steps, last = lock.steps
    return msgspec.structs.replace(lock, steps=(*steps, msgspec.structs.replace(last, patches=patches)))


def test_every_patch_is_named_by_a_row_and_every_row_names_one_that_is_shipped() -> None:
    assert sorted(file.name for file in (shipped_folder("recipes") / "patches").iterdir()) == NAMED


@every_row("name", NAMED)
def test_a_patch_says_why_where_it_is_from_and_what_it_serves(name: str) -> None:
    text = (shipped_folder("recipes") / "patches" / name).read_text("utf-8")
    head = text.partition("\n--- a/")[0]
    assert [word for word in ("Reason: ", "Upstream: ", "Serves: ") if f"\n{word}" not in head] == []
    assert patch_sha256(name) == patch_sha256(name).lower()


def test_a_locked_patch_reaches_the_sources_and_no_other_component() -> None:
    lock = load_lock(PATCHED)
    assert lock is not None
    making = Making(lock=lock)
    files = {
        f.sha256: shipped_folder("recipes")
        for s in (lock.build, lock.run)
        for f in (*s.debian, *s.wheels, *s.sources)
    }
    with_patches = {
        step.component: sorted(
            n for n in compile_context(making, step, files, {}) if n.startswith("patches/")
        )
        for step in steps_of(lock)
    }
    assert with_patches == {"mpi4py": [], "horovod": sorted(f"patches/{n}" for n in patches_of(lock))}
    assert len(patches_of(lock)) == 3
    assert "patches/horovod-0.28.1-tensorflow-2.19.patch" in whole_context(making, files)
    assert dockerfile(making).count("/build/patches/") == 1
    assert "patch" in {file.name for file in lock.build.debian}


def test_another_patch_compiles_anew() -> None:
    lock = load_lock(PATCHED)
    assert lock is not None
    keys = {
        key_of(steps_of(changed(lock, patches))[-1], lock, {})
        for patches in ({}, {"a.patch": "0" * 64}, {"a.patch": "1" * 64})
    }
    assert len(keys) == 3


@every_row("name", ["none.patch", "horovod-0.28.1-tensorflow-2.19.patch"])
def test_a_patch_that_this_toolkit_does_not_have_is_refused(name: str) -> None:
    lock = load_lock(PATCHED)
    assert lock is not None
    with pytest.raises(BadInput, match=f"toolkit has no patch {name}") as caught:
        patches_of(changed(lock, {name: "0" * 64}))
    assert "image lock tf2.21-cpu --upgrade" in caught.value.fix
