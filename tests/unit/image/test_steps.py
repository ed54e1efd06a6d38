"""Test the compile steps that toolkit derives from the locks of the shipped recipes."""

from tests.unit.tables import every_row
from toolkit.image.locks.lock import fitting_lock
from toolkit.image.locks.recipe import load, names
from toolkit.image.locks.steps import Step, steps_of
from toolkit.model.lock import Lock

BUILDABLE = [name for name in names() if not load(name).recipe.unbuildable]


def locked(name: str) -> Lock:
    return fitting_lock(load(name), name)


def steps(name: str) -> dict[str, Step]:
    return {step.component: step for step in steps_of(locked(name))}


def test_nvcc_is_taken_out_of_its_package_where_horovod_is_compiled() -> None:
    found = steps("tf2.14-cuda11.8")
    assert set(found) == {"mpi4py", "horovod"}
    (package,) = found["horovod"].extra
    assert package.file.startswith("nvidia-cuda-toolkit_11.8")
    assert found["horovod"].parts == ("horovod.sh", "cuda.sh", "nccl.sh")
    assert "nccl" in found["horovod"].words
    assert "g++-11" in {file.name for file in locked("tf2.14-cuda11.8").build.debian}
    assert package not in locked("tf2.14-cuda11.8").run.sources


def test_nvcc_of_cuda_13_comes_from_wheels() -> None:
    step = steps("torch-cuda")["horovod"]
    assert (step.extra, step.parts) == ((), ("horovod.sh", "nccl.sh"))
    assert {"nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt"} <= {file.name for file in step.requirements}


def test_an_mpi_from_source_is_compiled_before_what_needs_it() -> None:
    found = steps("tf2.15-ompi-source-cpu")
    assert found["openmpi"].after == ("ucx", "pmix")
    assert {"ucx", "pmix", "openmpi"} <= set(found["mpi4py"].after)
    assert {"ucx", "pmix", "openmpi"} <= set(found["horovod"].after)


def test_what_is_compiled_against_the_wheel_of_an_mpi_sees_it() -> None:
    found = steps("tf2.15-ompi5-cpu")
    assert set(found) == {"mpi4py", "horovod"}
    assert all("openmpi" in {file.name for file in step.wheels} for step in found.values())


@every_row("name", [name for name in BUILDABLE if "cuda" not in name])
def test_no_image_for_processors_takes_the_wheel_for_gpus(name: str) -> None:
    wheels = {file.name for file in locked(name).run.wheels}
    assert "tensorflow" not in wheels
    assert not {wheel for wheel in wheels if wheel.startswith("nvidia-")}


def test_the_second_keras_is_beside_the_third() -> None:
    assert {"tensorflow-cpu", "keras", "tf-keras"} <= {f.name for f in locked("tf2.18-cpu").run.wheels}
