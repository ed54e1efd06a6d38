"""Write the job script, which users can read and can also submit with sbatch, without toolkit."""

from collections.abc import Mapping, Sequence

import msgspec

from toolkit import __version__
from toolkit import scheduler as schedulers
from toolkit.data import shipped_folder
from toolkit.engine.planning.proposal import GLOO_FILE
from toolkit.errors import BadInput
from toolkit.launch.jobscript import broadcast, preflight, ranks
from toolkit.launch.jobscript import foreign as found
from toolkit.launch.jobscript.plan import MPIRUN_FILE, by_agent, gloo_file, launch_words
from toolkit.launch.jobscript.preflight import PREFLIGHT
from toolkit.launch.jobscript.wrapper import gloo_program
from toolkit.launch.request import sweep_values, variables
from toolkit.launch.request.checks import as_name, check_command, check_names, check_spec, check_time
from toolkit.launcher import site_launcher, srun
from toolkit.launcher.srun import IN_SHELL, NODES
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.model.site import Site
from toolkit.render import load, quote_around, render, with_variables
from toolkit.runtime import edf, runtime_of_name

__all__ = ["PREFLIGHT", "as_name", "check_command", "check_names", "check_time", "job_script"]

PREFLIGHT_SECONDS = 300
"""The time limit of the preflight in seconds; thousands of ranks need one to two minutes to connect."""

GPU_FILE, GPU_SECONDS = "gpu-use.csv", 30
"""The file in the job's folder with the GPU utilisation of the first node, and the seconds between two
samples."""

RESTARTS = 100
"""The largest number of resubmissions of a job with ``--requeue`` but without ``--chain``. The limit stops a
job that resubmits itself without progress."""

_WIDTH = 90
"""The largest number of characters of a command in one line; a longer command continues on the next line."""


def load_template(site: Site | None) -> None:
    """Load the template of the job script before toolkit needs it, while toolkit waits for the host."""
    load("slurm", schedulers.scheduler_of(site).TEMPLATE)


def job_script(
    spec: JobSpec,
    plan: Plan,
    reason: str,
    runtime: str = "singularity",
    site: Site | None = None,
    image: ImageFacts | None = None,
    notes: Sequence[str] = (),
    copies: Mapping[str, tuple[str, int]] | None = None,
) -> str:
    """Return the script of one job, from the template of the site's scheduler.

    Args:
        spec: the job.
        plan: the engine's launch plan: the launcher, the options of the container, and the variables.
        reason: why toolkit chose the launch mode.
        runtime: the command of the container runtime.
        site: the profile of the cluster.
        image: the facts about the image, which determine the preflight command.
        notes: comments for the head of the script, in addition to ``reason``.
        copies: the digest and size in bytes of each file that the job copies to its nodes, by path.

    Raises:
        BadInput: if Slurm does not accept a value, or a script cannot contain the value.
    """
    check_spec(spec)
    spec = preflight.with_possible_preflight(spec, plan, image)
    _check_elastic(spec, plan)
    copied = copies or {}
    pieces = {**_pieces(spec, site), **broadcast.pieces_of(broadcast.files_of(spec, copied))}
    scheduler = schedulers.scheduler_of(site)
    checked = preflight.words(spec, site, image, plan)
    foreign = found.foreign(spec, site, plan.mode)
    dropped = (found.WORD,) if foreign else ()
    return render(
        "slurm",
        scheduler.TEMPLATE,
        {
            "version": __version__,
            "spec": spec,
            "header": scheduler.header(spec, site),
            "mode": plan.mode,
            "because": _comment(reason),
            "notes": [_comment(note) for note in notes],
            "folder": quote_around(spec.directory, {k: v for k, v in pieces.items() if k != spec.directory}),
            "modules": _modules(spec, site),
            "purge": site is not None and site.purge,
            **_launch_lines(spec, plan, runtime, dropped, checked, pieces),
            "foreign": foreign,
            # toolkit may not know the path of the job's folder before the job runs.
            # Therefore, the next values contain file names relative to this folder, in which the script runs.
            **variable_values(spec),
            **_check_values(spec, plan, image),
            **broadcast.values(spec, site, copied, _once_a_node(spec, site)),
            **image_values(spec, runtime, site),
            **_definition(spec, runtime, (*plan.binds, *preflight.binds(spec, checked)), pieces),
            "wrapper_file": GLOO_FILE if gloo_file(spec, plan) else None,
            "wrapper": gloo_program(),
            **ranks.values(spec, plan, scheduler),
            "mpirun_file": MPIRUN_FILE if by_agent(plan) else None,
            "mpirun": (shipped_folder("slurm") / MPIRUN_FILE).read_text(encoding="utf-8"),
            **_runtime_values(spec, runtime),
            **_stop_values(spec),
        },
    )


def _launch_lines(
    spec: JobSpec,
    plan: Plan,
    runtime: str,
    unset_options: tuple[str, ...],
    preflight_command: Sequence[str],
    pieces: Mapping[str, str],
) -> dict[str, str]:
    """Return the lines that start the ranks, and the lines that start ``preflight_command``.

    An elastic job starts its ranks in a loop, so its lines have more indentation.
    """
    program = launch_words(spec, plan, spec.command, runtime, unset_options)
    binds = preflight.binds(spec, preflight_command)
    preflight_words = launch_words(spec, plan, preflight_command, runtime, unset_options, binds)
    return {
        "launch": _lines(program, 8 if spec.elastic else 4, pieces),
        "preflight": _lines(preflight_words, 8, pieces),
    }


def _check_values(spec: JobSpec, plan: Plan, image: ImageFacts | None) -> dict[str, object]:
    """Return the template values of ``parts/preflight.sh.j2``: the time limit, the software that connects the
    ranks, and the program file.
    """
    file, text = preflight.file_of(spec, plan, image)
    return {
        "preflight_seconds": PREFLIGHT_SECONDS,
        "preflight_of": preflight.title_of(plan),
        "check_file": file,
        "check": text,
    }


def _stop_values(spec: JobSpec) -> dict[str, object]:
    """Return the template values for the lines that stop a job after a checkpoint and resubmit the job."""
    return {
        "asks_to_stop": bool(spec.trainer or spec.warning or spec.requeue or spec.chain or spec.elastic),
        "may_resume": spec.may_resume,
        "restarts": spec.chain or RESTARTS,
        "node_count": IN_SHELL[NODES] if spec.elastic else spec.nodes,
    }


def _runtime_values(spec: JobSpec, runtime: str) -> dict[str, object]:
    """Return the template values for the container runtime and for the file with the GPU utilisation."""
    return {
        "runtime": runtime,
        "measured": runtime_of_name(runtime).MEASURED,
        "is_program": not runtime_of_name(runtime).IN_LAUNCHER,
        "gpu_file": GPU_FILE if spec.gpus_per_node else "",
        "gpu_seconds": GPU_SECONDS,
    }


def image_values(spec: JobSpec, runtime: str, site: Site | None = None) -> dict[str, object]:
    """Return the template values of ``parts/image.sh.j2``, which loads the image on each node.

    For a job of ``launch --local``, which runs on one node, ``localscript`` replaces ``image_start`` with an
    empty text.
    """
    kind = runtime_of_name(runtime)
    name = kind.image(spec)[0]
    if not kind.PREPARES or name == spec.image:
        return {"image_script": ""}
    return {
        "image_script": (shipped_folder("slurm") / kind.PREPARES).read_text(encoding="utf-8"),
        "image_file": f"toolkit-{kind.PREPARES}",
        "image_start": _once_a_node(spec, site),
        "image_words": (spec.image, name),
    }


def _definition(
    spec: JobSpec, runtime: str, binds: Sequence[str], pieces: Mapping[str, str]
) -> dict[str, object]:
    """Return the template values for the file that names the image and the mounts for a container runtime.

    The text of the file is empty if the container runtime does not need such a file.
    """
    text = runtime_of_name(runtime).definition(spec, binds)
    return {"definition": quote_around(text, pieces) if text else "", "definition_file": edf.FILE}


def _once_a_node(spec: JobSpec, site: Site | None) -> str:
    """Return the shell words that start a program once on each node."""
    launcher = site_launcher(site, srun.COMMAND)
    single = msgspec.structs.replace(spec, ranks_per_node=1)
    more = ("--mpi=none",) if launcher is srun else ()
    return _lines([[launcher.COMMAND, *launcher.counts(single), *more]], 4, IN_SHELL)


def variable_values(spec: JobSpec) -> dict[str, object]:
    """Return the template values of ``parts/variables.sh.j2``, which sets the ranks' variables."""
    text = variables.script_of(spec)
    return {
        "variables": text,
        "variables_file": variables.FILE,
        "variables_end": variables.end_of(text),
        "secrets": spec.secrets,
        "secrets_file": variables.SECRETS,
        "is_array": bool(spec.array),
        "sweep": sweep_values.lines(spec.sweep),
        "sweep_file": sweep_values.FILE,
    }


def _check_elastic(spec: JobSpec, plan: Plan) -> None:
    if spec.elastic and (plan.inside or plan.launcher[0] != "srun"):
        raise BadInput(
            f"--elastic: mode {plan.mode} starts its ranks with {plan.launcher[0]}, which cannot leave out "
            "a failed node",
            fix="use a mode that starts its ranks with srun: `--mode srun-pmix` or `--mode gloo`",
        )


def _modules(spec: JobSpec, site: Site | None) -> list[list[str]]:
    """Return the arguments of the ``module`` command for each module, without duplicates, the site's modules
    first.
    """
    of_site = (*site.modules, *site.container.modules) if site else ()
    words = [word.split(" ") for word in dict.fromkeys((*of_site, *spec.modules))]
    return [arguments if arguments[0] in {"swap", "use"} else ["load", *arguments] for arguments in words]


def _pieces(spec: JobSpec, site: Site | None) -> Mapping[str, str]:
    """For each text that the job's shell must expand, return the quoted form that the script contains.

    The shell expands variables only in values of a site profile. The shell does not expand words from the
    user.
    """
    texts = (site.directory, site.scratch, *site.container.binds, *site.env.values()) if site else ()
    pieces = {text: with_variables(text) for text in texts if "$" in text}
    submitted = schedulers.scheduler_of(site).SUBMIT_DIR
    pieces[submitted] = with_variables(submitted)
    # Each task of an array has a separate folder, so the script computes the name of the task's folder.
    needs_shell = bool(spec.array) or any(text in spec.directory for text in pieces)
    pieces |= sweep_values.pieces(spec.sweep)
    return {**IN_SHELL, **pieces, **({spec.directory: '"$job_dir"'} if needs_shell else {})}


def _comment(text: str) -> str:
    """Return a text without line breaks and control characters, so that it fits into one comment line."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _lines(groups: Sequence[Sequence[str]], indent: int, pieces: Mapping[str, str]) -> str:
    """Return the shell text of a command: quote every word, and start a new line for each group."""
    start = " \\\n" + " " * indent
    return start.join(f"{start}    ".join(_broken(group, pieces)) for group in groups)


def _broken(group: Sequence[str], pieces: Mapping[str, str]) -> list[str]:
    """Split a group of a command's words into lines; a line starts only at an option or a variable."""
    chunks: list[str] = []
    for word in group:
        text = found.SHELL if word == found.WORD else quote_around(word, pieces)
        if not chunks or word.startswith("-") or (group[0] == "env" and "=" in word):
            chunks.append(text)
        else:
            chunks[-1] += f" {text}"
    lines = chunks[:1]
    for chunk in chunks[1:]:
        if len(lines[-1]) + len(chunk) > _WIDTH:
            lines.append(chunk)
        else:
            lines[-1] += f" {chunk}"
    return lines
