"""Test the cache of compiled components: entries are complete, and their keys include all inputs."""

import io
import tarfile
import threading
from types import SimpleNamespace

import pytest

from toolkit.errors import CheckFailed
from toolkit.image.builds import compiled
from toolkit.image.builds.emit import Making
from toolkit.image.locks.lock import load_lock
from toolkit.model.progress import Silent
from toolkit.run.docker.engine import BuildOptions, ParallelBuilds

KEY = "ab" * 32
WHEEL = "mpi4py-4.1.1-cp311-cp311-linux_x86_64.whl"


@pytest.fixture
def step(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path))
    (only,) = Making(lock=load_lock("mpi-only")).steps
    return only


def stream(*names, content=b"wheel" * 100_000):
    """Yield a folder's tar in pieces, as the Docker engine sends it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(f"compiled/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    whole = packed.getvalue()
    return iter([whole[at : at + 12_345] for at in range(0, len(whole), 12_345)])


def test_what_a_step_made_is_found_again(step):
    made = compiled._keep(step, KEY, stream("other.tar", WHEEL))
    assert made.path.name == WHEEL
    assert made.path.read_bytes() == b"wheel" * 100_000
    assert compiled._cached_result(step, KEY) == made
    assert compiled._cached_result(step, "cd" * 32) is None


def test_a_damaged_one_is_made_again(step):
    made = compiled._keep(step, KEY, stream(WHEEL))
    made.path.write_bytes(b"damaged")
    assert compiled._cached_result(step, KEY) is None
    compiled._keep(step, KEY, stream(WHEEL))
    assert compiled._cached_result(step, KEY) == made


def test_a_step_that_made_nothing_is_told_and_nothing_is_kept(step, tmp_path):
    with pytest.raises(CheckFailed, match=r"mpi4py did not produce mpi4py-\*\.whl"):
        compiled._keep(step, KEY, stream("something.else"))
    assert list((tmp_path / "compiled").iterdir()) == []


def test_an_engine_that_dies_leaves_nothing(step, tmp_path):
    def dying():
        yield next(stream(WHEEL))
        raise ConnectionError("gone")

    with pytest.raises((ConnectionError, tarfile.TarError)):
        compiled._keep(step, KEY, dying())
    assert list((tmp_path / "compiled").iterdir()) == []


class Ending:
    """A fake build in which a step waits until another step ends the build."""

    def __init__(self):
        self.ended = threading.Event()
        self.builds = SimpleNamespace(end=self.ended.set)

    def waits(self):
        assert self.ended.wait(10)
        raise CheckFailed("its container went away")


def test_a_step_that_fails_ends_the_others_and_is_the_one_that_is_told():
    work = Ending()

    def fails():
        raise CheckFailed("the real reason")

    with pytest.raises(CheckFailed, match="the real reason"):
        compiled._run_parallel({"mpi4py": work.waits, "horovod": fails}, work)
    assert work.ended.is_set()


def test_steps_side_by_side_all_give_what_they_made():
    both = threading.Barrier(2)

    def makes():
        both.wait(10)
        return "made"

    assert compiled._run_parallel({"ucx": makes, "pmix": makes}, Ending()) == {"ucx": "made", "pmix": "made"}


def test_of_two_builds_that_want_the_same_one_compiles(step, monkeypatch):
    def work():
        return compiled._Work(None, None, {}, Silent(), BuildOptions(), 1, ParallelBuilds(None))

    times = []

    def compiles(self, step, key, made):
        times.append(threading.get_ident())
        return compiled._keep(step, key, stream(WHEEL))

    monkeypatch.setattr(compiled._Work, "_compiled", compiles)
    both = [threading.Thread(target=work().compile, args=(step, KEY, {})) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(20)
    assert len(times) == 1
    assert work().compile(step, KEY, {}).path.name == WHEEL
