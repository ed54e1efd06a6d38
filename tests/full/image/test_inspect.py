"""Test that the facts that toolkit reads from a SIF equal the answers of the running image."""

import shutil
import time

import pytest

from tests.flip import flip
from tests.services.program import toolkit
from tests.services.ready import RECIPE
from toolkit.errors import CheckFailed
from toolkit.image.inspect import inspect
from toolkit.versions import is_same_version


@pytest.fixture(scope="module")
def facts(training_sif):
    return inspect(training_sif)


def inside(engine, script: str) -> str:
    said: bytes = engine.containers.run(
        f"toolkit/{RECIPE}:latest", ["sh", "-c", script], remove=True, mem_limit="2g", network_mode="none"
    )
    return said.decode().strip()


def test_a_training_image_is_read_in_three_seconds_of_one_processor(training_sif):
    begun = time.process_time()
    inspect(training_sif)
    assert time.process_time() - begun < 3


def test_the_mpi_that_is_found_is_the_one_that_runs(facts, engine):
    said = inside(engine, 'python3 -c "from mpi4py import MPI; print(MPI.Get_library_version())"')
    assert facts.mpi.implementation == "openmpi"
    assert f"Open MPI v{facts.mpi.version}" in said
    loaded = inside(
        engine, 'ldd "$(python3 -c "import mpi4py.MPI as m; print(m.__file__)")" | grep libmpi.so'
    )
    assert loaded.split()[2].rpartition("/")[2] == "libmpi.so.40"
    assert inside(engine, f"readlink -f {loaded.split()[2]}") == facts.mpi.library


def test_versions_are_those_that_python_and_libc_report(facts, engine):
    script = "from importlib.metadata import version as v; print(v('horovod'), v('mpi4py'))"
    horovod, mpi4py = inside(engine, f'python3 -c "{script}"').split()
    assert (facts.horovod, facts.mpi4py) == (horovod, mpi4py)
    assert facts.glibc == inside(engine, "getconf GNU_LIBC_VERSION").split()[1]
    assert facts.python in inside(engine, "python3 --version")
    assert facts.architecture == inside(engine, "uname -m")
    assert facts.mpi.launcher == inside(engine, 'readlink -f "$(command -v mpirun)"')


def test_the_image_is_what_it_says_it_is(facts):
    assert facts.disagreements == ()
    assert is_same_version(facts.stack["pmix"], facts.pmix)


def test_a_copy_that_stopped_half_way_is_refused(training_sif, tmp_path):
    half = tmp_path / "half.sif"
    with training_sif.open("rb") as whole, half.open("wb") as part:
        part.write(whole.read(8 << 20))
    done = toolkit("doctor", str(half), ok=False)
    assert done.returncode == 2
    assert "the SIF is incomplete" in done.stderr


def test_a_flipped_byte_is_refused(training_sif, tmp_path):
    copy = tmp_path / training_sif.name
    shutil.copy(training_sif, copy)
    shutil.copy(training_sif.with_name(f"{training_sif.name}.sha256"), tmp_path)
    flip(copy, copy.stat().st_size // 2)
    with pytest.raises(CheckFailed, match="sha256"):
        inspect(copy)
