"""Run a job on one machine without Slurm: choose the launch mode, and write a bash script."""

from collections.abc import Mapping, Sequence

import msgspec

from toolkit import __version__
from toolkit.engine.predict import predict
from toolkit.errors import BadInput, Missing
from toolkit.launch.jobscript import peers, plan, preflight, ranks
from toolkit.launch.jobscript.choose import ModeChoice, choose
from toolkit.launch.jobscript.script import check_command, image_values, variable_values
from toolkit.launch.jobscript.wrapper import gloo_program
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import FIELDS, JobFile
from toolkit.model.prediction import Mode, Plan, Request
from toolkit.program.choose import best_modes
from toolkit.render import quote_words, render
from toolkit.runtime import COMMAND as RUNTIME

MODES: tuple[Mode, ...] = ("mpirun-container", "torch", "jax", "tf-config", "gloo")
"""The launch modes on one machine without Slurm.

Either a launcher in the image starts the ranks, or the script starts the ranks and sets their addresses.
"""

DIRECT: Mode = "srun-none"
"""The launch mode of a single rank without a launcher; its name comes from ``srun --mpi=none``."""

_OF_QUEUE = {field.name for field in FIELDS if field.queue}
"""The names of job fields that need Slurm."""

_OF_ARRAYS = "default of arrays"
"""The text in ``origins`` for an output file that :mod:`toolkit.launch.request.complete` chose for array
tasks.
"""


def without_queue(job: JobFile, origins: Mapping[str, str], file: str = "") -> tuple[JobFile, list[str]]:
    """Return the job without fields that need Slurm, and the removed fields with the sources of their values.

    toolkit removes a field only if its value is from settings or environment variables, which also apply to
    jobs on clusters. ``origins`` has the source of each field's value. ``file`` is the name of the job file.

    Raises:
        BadInput: if an option or the job file sets a field that needs Slurm, or any source sets a sweep.
    """
    values = job.given_values()
    left = [name for name in values if name in _OF_QUEUE or origins[name] == _OF_ARRAYS]
    meant = [name for name in left if values[name] is not False]
    # Refuse a sweep from any source, even from settings.
    # Without the sweep, the placeholders in the command would have no values.
    mine = [name for name in meant if name == "sweep" or _of_this_job(origins[name], file)]
    if refused := [_option_or_field(name, origins[name]) for name in mine]:
        raise BadInput(
            f"{', '.join(refused)}: not possible with --local, which uses no Slurm queue",
            fix="remove the option or field, or launch on a cluster; "
            "docs/launch.md lists the options of `--local`",
        )
    notes = [
        _option_or_field(name, origins[name]) for name in meant if not origins[name].startswith("default")
    ]
    return msgspec.structs.replace(job, **dict.fromkeys(left)), notes


def _of_this_job(origin: str, file: str) -> bool:
    return origin.startswith("--") or (bool(file) and file in {origin, origin.rpartition(":")[0]})


def _option_or_field(name: str, origin: str) -> str:
    """Return the option that set a field, or the field's name with its source."""
    return origin if origin.startswith("--") else f"{name} ({origin})"


def choose_here(host: HostFacts, image: ImageFacts, request: Request, *, force: bool = False) -> ModeChoice:
    """Choose the launch mode on this machine; ``host`` contains the facts about this machine.

    Raises:
        BadInput: if the mode needs Slurm, or the job has more than one node.
        CheckFailed: if toolkit does not predict that the launch works, and ``force`` is false.
        Missing: if this machine has neither Apptainer nor Singularity.
    """
    if request.nodes != 1:
        raise BadInput(
            f"--nodes {request.nodes}: --local uses one node, this machine; set --ranks-per-node instead"
        )
    mode = request.mode
    allowed = (*MODES, DIRECT) if request.has_one_rank else MODES
    if mode is not None and mode not in allowed:
        raise BadInput(f"--mode {mode}: needs Slurm; modes for --local: {', '.join(allowed)}")
    if host.runtime is None and "runtime" in host.absent:
        raise Missing(
            "this machine has neither Apptainer nor Singularity; `--local` needs one of them",
            fix="install Apptainer; or use the virtual cluster, which needs only Docker: "
            "`toolkit cluster up`, then `--cluster virtual` instead of `--local`",
        )
    request = msgspec.structs.replace(
        request, batch=False, allocation=False, gpus=request.gpus or bool(host.gpus)
    )
    verdict = predict(_without_slurm(host), image, request)
    best = (*best_modes(image, request), *allowed)
    works = next((mode for mode in best if mode in allowed and verdict.ok(mode)), None)
    verdict = msgspec.structs.replace(
        verdict, predictions=tuple(p for p in verdict.predictions if p.mode in allowed), chosen=works
    )
    return choose(verdict, mode or works or (verdict.predictions[0].mode if force else None), force=force)


def _without_slurm(host: HostFacts) -> HostFacts:
    """Return the host's facts without Slurm."""
    unknown = {name: why for name, why in host.unknown.items() if name.partition(".")[0] != "slurm"}
    absent = {**host.absent, "slurm": "slurm: not used, because all ranks run on this machine"}
    return msgspec.structs.replace(host, slurm=None, unknown=unknown, absent=absent)


def local_script(
    spec: JobSpec, launch_plan: Plan, reason: str, runtime: str = RUNTIME, image: ImageFacts | None = None
) -> str:
    """Return the script that runs the job with ``bash job.sh`` on this machine, from ``slurm/local.sh.j2``.

    Raises:
        BadInput: if a value cannot appear in a script.
    """
    check_command(spec.command)
    spec = preflight.with_possible_preflight(spec, launch_plan, image)
    if peers.has_check(launch_plan):  # the ranks are on one machine, so do not check their connections
        spec = msgspec.structs.replace(spec, preflight=False)
    return render(
        "slurm",
        "local.sh.j2",
        {
            "version": __version__,
            "mode": launch_plan.mode,
            "because": " ".join("".join(c if c.isprintable() else " " for c in reason).split()),
            "ranks": spec.ranks_per_node,
            "launcher": launch_plan.inside,
            "copies": launch_plan.mode == "gloo" or bool(launch_plan.wrapper),
            "processes": 1 if launch_plan.starter else spec.ranks_per_node,
            **ranks.values(spec, launch_plan, None),
            "start": _lines(_start_words(spec, launch_plan, runtime), 8),
            "command": _lines([spec.command], 4),
            "preflight": _lines([preflight.local_command(spec, image)], 4) if spec.preflight else "",
            "preflight_of": "Gloo" if launch_plan.mode == "gloo" else "MPI",
            **variable_values(spec),
            "check_file": preflight.FILE if preflight.is_of_program(spec, image) else None,
            "check": preflight.program_text(),
            **image_values(spec, runtime),
            "image_start": "",
            "definition": "",
            "wrapper_file": plan.gloo_file(spec, launch_plan),
            "wrapper": gloo_program(),
            "runtime": runtime,
        },
    )


def _start_words(spec: JobSpec, launch_plan: Plan, runtime: str) -> list[list[str]]:
    """Return the command that starts the ranks on this machine, without the words that need Slurm."""
    if launch_plan.inside:
        # mpirun receives a signal twice: through its process group and through the container runtime.
        # With two signals, mpirun exits and does not stop its ranks, which have separate process groups.
        # With a PID namespace, the ranks stop when the first process of the namespace exits.
        apart = msgspec.structs.replace(launch_plan, container=("--pid", *launch_plan.container))
        return plan.launch_words(spec, apart, (), runtime)
    outside = msgspec.structs.replace(launch_plan, launcher=("srun",))
    return plan.launch_words(spec, outside, (), runtime)[1:]


def _lines(groups: Sequence[Sequence[str]], indent: int) -> str:
    return (" \\\n" + " " * indent).join(quote_words(group) for group in groups)
