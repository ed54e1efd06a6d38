"""Test the rules about programs without MPI: options that hide the rank number, and missing frameworks."""

from tests.unit.engine.whole import IMAGE, absent, case, host, image, unread
from toolkit.model.facts import ImageProgram

TORCH = {"mode": "torch", "program": "torch", "wrapper": ("sh", "toolkit-ranks.sh")}

FIRES = {
    "ranks-not-told": [
        case(**TORCH, container=("--cleanenv",)),
        case(host(environment={"APPTAINER_CONTAINALL": "1"}), **TORCH),
        case(mode="srun-pmix", program="jax", container=("--containall",)),
        case(**TORCH, unset=("SLURM_PROCID",)),
        case(of=image(program=ImageProgram(command=("run",), path="/opt/a", clears="/opt/run")), **TORCH),
    ],
    "image-lacks-framework": [
        case(**TORCH),
        case(mode="jax", program="jax"),
        case(of=absent(IMAGE, "tensorflow"), mode="tf-config", program="tf-config"),
    ],
}
QUIET = {
    "ranks-not-told": [
        case(**TORCH),
        case(host(environment={"APPTAINER_CONTAINALL": "1"}), **TORCH, unset=("APPTAINER_CONTAINALL",)),
        case(mode="srun-none", program="serial", container=("--cleanenv",)),
        case(of=image(program=ImageProgram(command=("train",), path="/opt/a")), **TORCH),
    ],
    "image-lacks-framework": [
        case(of=image(pytorch="2.4.0"), **TORCH),
        case(of=image(jax="0.5.0"), mode="jax", program="jax"),
        case(mode="tf-config", program="tf-config"),
        case(),
    ],
}
UNDECIDED = {
    "image-lacks-framework": [case(of=unread(IMAGE, "pytorch"), **TORCH)],
}
OUTCOMES = {"ranks-not-told": "init-failure"}
