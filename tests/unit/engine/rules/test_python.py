"""Test the rules about Horovod's TensorFlow, and about Python packages in the home folder."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, absent, case, host, image, runtime, unread
from toolkit.engine.judge import judge
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict
from toolkit.engine.registry import RULES
from toolkit.model.facts import ImageProgram
from toolkit.model.prediction import Request

USER = host(user_packages=("3.9", "3.11"))

MINE = host(user_packages=("3.11",), user_site={"3.11": ("mpi4py 4.1.2", "numpy 1.26.4")})
NUMPY = host(user_packages=("3.11",), user_site={"3.11": ("numpy 1.26.4",)})
HOROVOD = {"program": "horovod"}
GLOO_ALONE = image(horovod_built=("gloo",))
VENV = image(python_reads_home=False)
BINARY = image(program=ImageProgram(command=("/opt/probe",), path="/opt/probe", mpi=True))

FIRES = {
    "user-site-mpi": [case(MINE)],
    "horovod-lacks-mpi": [
        case(of=GLOO_ALONE, asked=HOROVOD),
        case(of=GLOO_ALONE, asked={"joins": frozenset({"horovod", "mpi"})}),
        case(of=GLOO_ALONE),
        case(of=image(), asked=HOROVOD, env={"HOROVOD_CONTROLLER": "gloo"}),
        case(of=image(environment={"HOROVOD_CONTROLLER": "GLOO"}), asked=HOROVOD),
    ],
    "horovod-lacks-nccl": [
        case(of=image(horovod_built=("mpi",))),
        case(of=image(horovod_built=("mpi",)), nodes=1),
    ],
    "horovod-other-tensorflow": [case(of=image(horovod_tensorflow="2.15.1"))],
    "horovod-lacks-framework": [
        case(of=image(horovod_frameworks=("torch",))),
        case(of=image(pytorch="2.4.0", pytorch_cuda="12.1")),
    ],
    "user-packages-shadow": [case(USER)],
}
QUIET = {
    "user-site-mpi": [
        case(NUMPY),
        case(MINE, env={"PYTHONNOUSERSITE": "1"}),
        case(MINE, container=("--no-home",)),
        case(MINE, BINARY),
        case(MINE, VENV),
        case(MINE, nodes=1),
    ],
    "horovod-lacks-mpi": [
        case(),
        case(of=GLOO_ALONE, mode="gloo"),
        case(of=GLOO_ALONE, asked={"program": "mpi"}),
        case(of=GLOO_ALONE, asked={"joins": frozenset({"mpi"})}),
        case(of=GLOO_ALONE, asked=HOROVOD, nodes=1),
        case(of=msgspec.structs.replace(GLOO_ALONE, program=BINARY.program)),
        case(of=image(horovod_built=("mpi",)), asked=HOROVOD, env={"HOROVOD_CONTROLLER": "gloo"}),
        case(of=image(), asked=HOROVOD, env={"HOROVOD_CONTROLLER": "mpi"}),
        case(of=absent(IMAGE, "horovod")),
    ],
    "horovod-lacks-nccl": [
        case(),
        case(host(gpus=("Tesla V100-SXM2-16GB",)), image(horovod_built=("mpi",)), nodes=1),
        case(host(gpus=()), image(horovod_built=("mpi",))),
    ],
    "horovod-other-tensorflow": [case(), case(of=image(horovod_tensorflow="2.16.1"))],
    "horovod-lacks-framework": [case(), case(of=absent(IMAGE, "horovod"))],
    "user-packages-shadow": [
        case(),
        case(host(user_packages=("3.9",))),
        case(USER, env={"PYTHONNOUSERSITE": "1"}),
        case(USER, image(environment={"PYTHONNOUSERSITE": "1"})),
        case(USER, container=("--no-home",)),
        case(USER, VENV),
        case(msgspec.structs.replace(runtime(settings={"mount home": "no"}), user_packages=("3.11",))),
    ],
}
OUTCOMES = {"user-site-mpi": "unknown", "horovod-lacks-mpi": "singletons"}
UNDECIDED = {
    "horovod-lacks-mpi": [case(of=unread(IMAGE, "horovod_built"), asked=HOROVOD)],
    "user-packages-shadow": [case(unread(HOST, "user_packages")), case(unread(USER, "runtime"))],
}


def test_horovod_never_changes_how_mpi_starts():
    rules = tuple(r for r in RULES if r.id in FIRES and r.advice)
    for odd in (c for cases in FIRES.values() for c in cases):
        assert judge(odd, rules)[0].outcome == "ok"


def test_gloo_as_controller_alone_makes_operations_of_horovod_fail():
    gloo = {"HOROVOD_CONTROLLER": "gloo"}
    rules = tuple(r for r in RULES if r.id == "horovod-lacks-mpi")
    alone = case(of=image(), asked=HOROVOD, env=gloo)
    both = case(of=image(), asked=HOROVOD, env={**gloo, "HOROVOD_CPU_OPERATIONS": "gloo"})
    assert [judge(one, rules)[0].outcome for one in (alone, both)] == ["init-failure", "singletons"]


def test_a_launch_leaves_the_packages_of_the_home_folder_out_unless_they_are_asked_for():
    asked = Request(nodes=2, user_site=True)
    assert plan(MINE, IMAGE, Request(nodes=2), "srun-pmix").env["PYTHONNOUSERSITE"] == "1"
    assert "PYTHONNOUSERSITE" not in plan(MINE, IMAGE, asked, "srun-pmix").env
    assert "PYTHONNOUSERSITE" not in plan(MINE, absent(IMAGE, "python"), Request(), "srun-pmix").env
    assert predict(MINE, IMAGE, Request(nodes=2)).chosen == "srun-pmix"
    assert predict(MINE, IMAGE, asked).chosen is None
    assert predict(NUMPY, IMAGE, asked).chosen == "srun-pmix"
