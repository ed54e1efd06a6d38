"""Test container runtimes that toolkit knows only from their documentation: commands, and unknown
predictions.
"""

import tomllib

import msgspec
import pytest

from tests.unit.engine.whole import IMAGE, runtime
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.engine.words import runtime_name
from toolkit.errors import BadInput
from toolkit.launch.jobscript.plan import launch_words
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan, Request
from toolkit.model.runtime import NAMES
from toolkit.probe.evidence import Section
from toolkit.runtime import RUNTIMES, runtime_of_name

SPEC = JobSpec(name="a", image="/work/images/My.tar", command=("./a",), directory="/work/runs/a", nodes=2)
PLAN = Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix"), binds=("/work", "/data:/d:ro"), unset=("X",))
DESCRIBED = [one for one in RUNTIMES if not one.MEASURED or "ch-run" in one.NAMES]
CONTAINER = {
    "ch-run": "env -u X ch-run --bind=/work:/work --bind=/data:/d:ro /work/images/My.tar -- ./a",
    "enroot": "env -u X enroot start --mount=/work:/work --mount=/data:/d:ro /work/images/My.tar ./a",
    "ce": "--environment=/work/runs/a/toolkit-image.toml env -u X ./a",
    "pyxis": (
        "--container-mounts=/work:/work,/data:/d:ro --container-image=/work/images/My.tar env -u X ./a"
    ),
    "podman-hpc": (
        "env -u X podman-hpc run --rm --volume=/work:/work --volume=/data:/d:ro localhost/my:latest ./a"
    ),
    "shifter": "env -u X shifter --volume=/work:/work --volume=/data:/d:ro --image=docker:my:latest ./a",
    "sarus": (
        "env -u X sarus run --mount=type=bind,source=/work,destination=/work "
        "--mount=type=bind,source=/data,destination=/d load/library/my:latest ./a"
    ),
}


@every_row("name", CONTAINER)
def test_the_words_are_those_of_the_documentation(name: str):
    words = [word for group in launch_words(SPEC, PLAN, SPEC.command, name) for word in group]
    assert " ".join(words[words.index("--mpi=pmix") + 1 :]) == CONTAINER[name]


def test_every_described_runtime_is_tried_here_and_can_be_chosen():
    assert {one.NAMES[0] for one in DESCRIBED} == set(CONTAINER) <= set(NAMES)


@every_row("kind", [one for one in DESCRIBED if not one.MEASURED], ids=lambda kind: kind.NAMES[0])
def test_what_is_predicted_for_a_runtime_that_was_not_run_is_beyond_the_record(kind):
    found = kind.read(Section("runtime", (f"other {kind.NAMES[0]}",), 127))
    assert found is not None
    host = msgspec.structs.replace(runtime(), runtime=found)
    image = msgspec.structs.replace(IMAGE, format=min(kind.FORMATS))
    verdict = predict(host, image, Request())
    said = verdict.of("srun-pmix")
    assert said.basis == "beyond"
    assert said.shown == "ok?"
    assert f"{runtime_name(kind.NAMES[0])}, which toolkit's developers have not tested" in said.why
    assert "runtime-not-measured" in [finding.id for finding in verdict.findings]
    assert kind.read(Section("runtime", ("other something",), 127)) is None


def test_the_container_engine_of_cscs_takes_its_mounts_from_a_file():
    text = runtime_of_name("ce").definition(
        msgspec.structs.replace(SPEC, workdir="/work"), ("/work", "/data:/d:ro")
    )
    assert tomllib.loads(text) == {
        "image": "/work/images/My.tar",
        "workdir": "/work",
        "entrypoint": False,
        "mounts": ["/work:/work", "/data:/d:ro"],
    }
    assert not any(one.definition(SPEC, ()) for one in RUNTIMES if one.NAMES != ("ce",))


def test_options_of_srun_start_no_mpirun_in_a_container():
    inside = msgspec.structs.replace(PLAN, mode="mpirun-container", launcher=("mpirun",), inside=True)
    with pytest.raises(BadInput, match="pyxis starts containers only with srun"):
        launch_words(SPEC, inside, SPEC.command, "pyxis")


def test_the_folder_of_the_command_is_an_option():
    folders = {one.NAMES[0]: one.workdir("/work/a") for one in RUNTIMES}
    assert folders["pyxis"] == ("--container-workdir=/work/a",)
    assert folders["enroot"] == ()
    assert runtime_of_name("ch-run").workdir("/a") == ("--cd=/a",)
