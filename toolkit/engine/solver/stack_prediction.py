"""Predict, before an image is built, which launch modes would work with this image on a host."""

import msgspec

from toolkit.engine.predict import RANKING, outcomes
from toolkit.engine.solver.search import ChosenRows
from toolkit.knowledge.cuda import least_driver
from toolkit.knowledge.stacks import Stacks, Version
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Mode, Prediction, Request
from toolkit.model.recipe import Operation
from toolkit.versions import older

_GUESSED = "the image is not built yet; the value is from recipes/knowledge/stacks.toml"
_CITED = ("mpi", "mpi.interfaces", "pmix", "glibc", "distribution", "ucx", "cuda", "horovod", "horovod_built")
_WITH_SSH = {"openmpi-bin", "openssh-client"}
"""Debian packages that install ssh in an image: openmpi-bin depends on openssh-client."""

_ABSENT = ("stack", "glibc_needed", "cpu_level", "ssh", "cuda", "horovod", "pmix", "ucx")

Ways = dict[Mode, str]
"""Launch mode → reason why the mode fails; the reason is an empty text if the mode works."""


def predict_stack(
    host: HostFacts,
    table: Stacks,
    architecture: str,
    stack: ChosenRows,
    operations: tuple[Operation, ...],
    request: Request,
) -> Ways:
    """Predict each launch mode on a host, for an image with the components in ``stack``. The best launch mode
    comes first in the result.
    """
    image = stack_facts(table, architecture, stack, operations)
    if short := _driver(host, stack):
        return dict.fromkeys(RANKING, short)
    ranking: tuple[Mode, ...] = (*RANKING, "gloo") if "gloo" in operations else RANKING
    # If no launch mode of ``ranking`` has a prediction, return the modes for programs without MPI.
    judged = {prediction.mode: prediction for prediction in outcomes(host, image, request)}
    return {mode: _trouble(judged[mode]) for mode in ranking if mode in judged} or {
        mode: _trouble(prediction) for mode, prediction in judged.items()
    }


def stack_facts(
    table: Stacks, architecture: str, stack: ChosenRows, operations: tuple[Operation, ...] = ()
) -> ImageFacts:
    """Return the facts that an image with the components in ``stack`` would have."""
    base = table.base_of(stack["base"].version)
    mpi = next(((name, stack[name]) for name in ("openmpi", "mpich") if name in stack), None)
    # Only the MPI uses PMIx and UCX, so the facts contain each of them only if the MPI requires it.
    used = {c: row.version for c, row in stack.items() if mpi and c in mpi[1].requires}
    version = {component: row.version for component, row in stack.items()}
    built: tuple[str, ...] = (*operations, "cuda") if "nccl" in operations else operations
    facts = {
        "ssh": "/usr/bin/ssh" if mpi and _WITH_SSH & set(mpi[1].debian.run) else None,
        "mpi": mpi and _mpi(*mpi),
        "pmix": used.get("pmix"),
        "ucx": used.get("ucx"),
        "cuda": version.get("cuda"),
        "horovod": version.get("horovod"),
        "horovod_built": (built or ("mpi", "gloo")) if "horovod" in stack else None,
    }
    speaks = mpi[1].speaks if mpi else None
    inside = speaks and "pmix" in speaks.interfaces and "pmix" not in used
    unknown = {"pmix": "the MPI contains its own PMIx, of an unknown release"} if inside else {}
    image = ImageFacts(
        path="",
        format="recipe",
        architecture=architecture,
        distribution=base.name.replace(":", " "),
        glibc=base.glibc,
        libfabric="libfabric.so.1",
        python=base.python,
        evidence=dict.fromkeys(_CITED, _GUESSED),
        absent={name: _GUESSED for name in _ABSENT if not facts.get(name) and name not in unknown},
        unknown=unknown,
    )
    return msgspec.structs.replace(image, **facts)


def _mpi(implementation: str, row: Version) -> ImageMpi | None:
    speaks = row.speaks
    if speaks is None:
        return None
    return ImageMpi(
        implementation=implementation,
        version=row.version,
        library=speaks.soname,
        interfaces=speaks.interfaces,
        launcher=speaks.launcher,
        plugins=speaks.plugins,
        markers=speaks.markers,
        soname=speaks.soname,
        device=speaks.device,
        own_shm=speaks.own_shm,
        components=speaks.components,
    )


def _driver(host: HostFacts, stack: ChosenRows) -> str:
    """Return why the host's GPU driver is too old for a stack's CUDA; an empty text if the driver is new
    enough, the host has no GPU driver, or the stack has no CUDA.
    """
    cuda = stack.get("cuda")
    least = least_driver(cuda.version) if cuda else None
    if cuda is None or host.gpu_driver is None or not older(host.gpu_driver, least):
        return ""
    return f"cuda {cuda.version} needs driver {least}; the host has {host.gpu_driver}"


def _trouble(prediction: Prediction) -> str:
    return "" if prediction.outcome == "ok" else f"{prediction.outcome}: {prediction.why}"
