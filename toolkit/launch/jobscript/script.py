"""Make the job script: a text that runs with plain sbatch and is readable by the person who keeps it."""

from collections.abc import Mapping, Sequence

import msgspec

from toolkit import __version__
from toolkit import scheduler as schedulers
from toolkit.data import shipped
from toolkit.engine.proposal import GLOO_FILE
from toolkit.errors import BadInput
from toolkit.launch.jobscript import broadcast, preflight, ranks
from toolkit.launch.jobscript import foreign as found
from toolkit.launch.jobscript.plan import MPIRUN_FILE, by_agent, gloo_file, launch_words
from toolkit.launch.jobscript.preflight import PREFLIGHT
from toolkit.launch.jobscript.wrapper import gloo_program
from toolkit.launch.request import variables
from toolkit.launch.request.checks import as_name, check_command, check_names, check_spec, check_time
from toolkit.launcher import at, srun
from toolkit.launcher.srun import IN_SHELL, NODES
from toolkit.model.facts import ImageFacts
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Plan
from toolkit.model.site import Site
from toolkit.render import quoted_around, render, with_variables
from toolkit.runtime import edf, named

__all__ = ["PREFLIGHT", "as_name", "check_command", "check_names", "check_time", "job_script"]

PREFLIGHT_SECONDS = 300
"""After this long a start-up that hangs is ended; wiring up thousands of ranks takes a minute or two."""

GPU_FILE, GPU_SECONDS = "gpu-use.csv", 30
"""The file in the job's folder with the use of its first node's GPUs, and the seconds between two samples."""

RESTARTS = 100
"""How often a job goes on by itself where nobody says how often: one that never gets anywhere has an end."""

_WIDTH = 90
"""Characters after which a long command goes on in the next line."""


def job_script(
    spec: JobSpec,
    plan: Plan,
    because: str,
    runtime: str = "singularity",
    site: Site | None = None,
    image: ImageFacts | None = None,
    notes: Sequence[str] = (),
    copies: Mapping[str, tuple[str, int]] | None = None,
) -> str:
    """Render the script of one job from the template of the site's scheduler.

    ``plan`` is what was judged: nothing is added to it here. ``because`` says why the mode was taken,
    ``image`` which preflight the image has, ``notes`` are more lines of comment at the top, ``copies``
    digest and size of the files that the job copies to its nodes first, by path.

    Raises:
        BadInput: for values that Slurm could not take or that no script can hold.
    """
    check_spec(spec)
    spec = preflight.kept(spec, plan, image)
    _check_elastic(spec, plan)
    copied = copies or {}
    pieces = {**_pieces(spec, site), **broadcast.pieces_of(broadcast.files_of(spec, copied))}
    scheduler = schedulers.of(site)
    checked = preflight.words(spec, site, image, plan)
    check_file, check = preflight.file_of(spec, plan, image)
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
            "because": _comment(because),
            "notes": [_comment(note) for note in notes],
            "folder": quoted_around(spec.directory, {k: v for k, v in pieces.items() if k != spec.directory}),
            "modules": _modules(spec, site),
            "purge": site is not None and site.purge,
            # An elastic job starts them in a loop, hence further in.
            "launch": _lines(
                launch_words(spec, plan, spec.command, runtime, dropped), 8 if spec.elastic else 4, pieces
            ),
            "preflight": _lines(
                launch_words(spec, plan, checked, runtime, dropped, preflight.binds(spec, checked)), 8, pieces
            ),
            "foreign": foreign,
            "preflight_seconds": PREFLIGHT_SECONDS,
            "preflight_of": preflight.title_of(plan),
            # The script is in its folder then, which it may have made the name of.
            **variable_values(spec),
            "check_file": check_file,
            "check": check,
            **broadcast.values(spec, site, copied, _once_a_node(spec, site)),
            **image_values(spec, runtime, site),
            **_definition(spec, runtime, (*plan.binds, *preflight.binds(spec, checked)), pieces),
            "wrapper_file": GLOO_FILE if gloo_file(spec, plan) else None,
            "wrapper": gloo_program(),
            **ranks.values(spec, plan, scheduler),
            "mpirun_file": MPIRUN_FILE if by_agent(plan) else None,
            "mpirun": (shipped("slurm") / MPIRUN_FILE).read_text(encoding="utf-8"),
            "runtime": runtime,
            "measured": named(runtime).MEASURED,
            "is_program": not named(runtime).IN_LAUNCHER,
            "gpu_file": GPU_FILE if spec.gpus_per_node else "",
            "gpu_seconds": GPU_SECONDS,
            "asks_to_stop": bool(spec.trainer or spec.warning or spec.requeue or spec.chain or spec.elastic),
            "goes_on": spec.goes_on,
            "restarts": spec.chain or RESTARTS,
            "node_count": IN_SHELL[NODES] if spec.elastic else spec.nodes,
        },
    )


def image_values(spec: JobSpec, runtime: str, site: Site | None = None) -> dict[str, object]:
    """Return what ``parts/image.sh.j2`` needs to load the image into the store of each node.

    Without a site profile and without Slurm the job is on one machine, and the script runs there.
    """
    kind = named(runtime)
    name = kind.image(spec)[0]
    if not kind.PREPARES or name == spec.image:
        return {"image_script": ""}
    return {
        "image_script": (shipped("slurm") / kind.PREPARES).read_text(encoding="utf-8"),
        "image_file": f"toolkit-{kind.PREPARES}",
        "image_start": _once_a_node(spec, site),
        "image_words": (spec.image, name),
    }


def _definition(
    spec: JobSpec, runtime: str, binds: Sequence[str], pieces: Mapping[str, str]
) -> dict[str, object]:
    """Return the file from which a runtime takes the image and its mounts, empty if words are enough."""
    text = named(runtime).definition(spec, binds)
    return {"definition": quoted_around(text, pieces) if text else "", "definition_file": edf.FILE}


def _once_a_node(spec: JobSpec, site: Site | None) -> str:
    """Return the words that start a program on each node once."""
    launcher = at(site, srun.COMMAND)
    single = msgspec.structs.replace(spec, ranks_per_node=1)
    more = ("--mpi=none",) if launcher is srun else ()
    return _lines([[launcher.COMMAND, *launcher.counts(single), *more]], 4, IN_SHELL)


def variable_values(spec: JobSpec) -> dict[str, object]:
    """Return what ``parts/variables.sh.j2`` needs to give the ranks their variables."""
    text = variables.script_of(spec)
    return {
        "variables": text,
        "variables_file": variables.FILE,
        "variables_end": variables.end_of(text),
        "secrets": spec.secrets,
        "secrets_file": variables.SECRETS,
        "is_array": bool(spec.array),
    }


def _check_elastic(spec: JobSpec, plan: Plan) -> None:
    if spec.elastic and (plan.inside or plan.launcher[0] != "srun"):
        raise BadInput(
            f"--elastic: mode {plan.mode} starts its ranks by {plan.launcher[0]}, which cannot be told "
            "of a node that is gone",
            fix="use a mode that starts by srun: --mode srun-pmix or gloo",
        )


def _modules(spec: JobSpec, site: Site | None) -> list[list[str]]:
    """Return the words behind ``module`` for each module, those of the site first, each once."""
    of_site = (*site.modules, *site.container.modules) if site else ()
    words = [word.split(" ") for word in dict.fromkeys((*of_site, *spec.modules))]
    return [one if one[0] in {"swap", "use"} else ["load", *one] for one in words]


def _pieces(spec: JobSpec, site: Site | None) -> Mapping[str, str]:
    """Return the parts of words that the job's own shell has to make up, and how it does.

    Only what stands in a site profile may name variables; what a person gives arrives as it is.
    """
    texts = (site.directory, site.scratch, *site.container.binds, *site.env.values()) if site else ()
    pieces = {text: with_variables(text) for text in texts if "$" in text}
    # Each job of an array has a folder of its own.
    submitted = schedulers.of(site).SUBMIT_DIR
    pieces[submitted] = with_variables(submitted)
    made = bool(spec.array) or any(text in spec.directory for text in pieces)
    return {**IN_SHELL, **pieces, **({spec.directory: '"$job_dir"'} if made else {})}


def _comment(text: str) -> str:
    """Keep a sentence in one comment line, whatever it quotes."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _lines(groups: Sequence[Sequence[str]], indent: int, pieces: Mapping[str, str]) -> str:
    """Quote every word and give each group a line, or more, so that a person can read a long command."""
    start = " \\\n" + " " * indent
    return start.join(f"{start}    ".join(_broken(group, pieces)) for group in groups)


def _broken(group: Sequence[str], pieces: Mapping[str, str]) -> list[str]:
    """Return the lines of a group: it is broken before options and variables alone."""
    chunks: list[str] = []
    for word in group:
        text = found.SHELL if word == found.WORD else quoted_around(word, pieces)
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
