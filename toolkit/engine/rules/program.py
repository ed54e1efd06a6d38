"""Rules about the program that each rank runs: which MPI it loads, and how ranks join without MPI."""

import posixpath
import shlex

from toolkit.engine.case import Case
from toolkit.engine.planning.proposal import RANKS_FILE
from toolkit.engine.rule import MPI_MODES, TRY_IT, Hit, LaunchStage, rule
from toolkit.engine.search_path import launch_search_path
from toolkit.engine.traits import HOST_FOLDERS, families
from toolkit.engine.wireup import clearing_options
from toolkit.engine.words import mpi_name
from toolkit.model.prediction import ProgramName
from toolkit.program import program_of_name
from toolkit.program.launchers import LAUNCHERS

_OWN_MODES = tuple(mode for mode in MPI_MODES if mode != "bind")
_BY_LAUNCHER = tuple(mode for mode in MPI_MODES if mode != "srun-none")
_NAME_IT = "name the program: `toolkit doctor IMAGE -- COMMAND`"


@rule(
    "program-fails",
    "The command cannot run in this image: a program or module is missing, or the script has an error",
    severity="error",
    fix="correct the command, or use an image that has the program",
    source="tests/full/programs/test_programs.py; toolkit launch refuses such a command",
)
def program_fails(case: Case) -> Hit | None:
    """toolkit reads the command, your script and the image's files. A missing command, a missing module or a
    syntax error stops every rank at its start.
    """
    if not case.request.faults:
        return None
    first, *further = case.request.faults
    more = (f"also: {fault.message}; {fault.fix}" for fault in further)
    evidence = (f"command: {shlex.join(case.request.command)}", *more)
    return Hit(evidence, "crash", first.message, first.message, first.fix, stage=LaunchStage.START)


@rule(
    "mount-hides-mpi",
    "A mount hides the program in the image, or the MPI library that the program loads",
    severity="error",
    fix="install the program and its MPI in another folder of the image, such as /opt",
    source="Apptainer user guide, bind paths: $HOME, /tmp and /var/tmp are mounted by default",
    facts=("image.hidden", "image.programs"),
    modes=_OWN_MODES,
)
def mount_hides_mpi(case: Case) -> Hit | None:
    """The runtime mounts the host's /tmp, /var/tmp and home folder over the image's folders with the same
    paths. These mounts hide every file that the image has in these folders. The program's file, or the MPI
    library that the program loads, may be among the hidden files.
    """
    image = case.original_facts
    if not image.hidden or any(image.programs.values()):
        return None
    file, folder = next(iter(image.hidden.items()))
    because = f"the mount of the host's {folder} hides the image's {file}"
    evidence = (f"image: {file}", f"plan: {folder} is mounted")
    if case.plan.inside and image.mpirun is None and "mpirun" in image.absent:
        return Hit(evidence, "unavailable", f"{because}, and the image has no other mpirun")
    if folder in HOST_FOLDERS:
        return Hit(evidence, "loader-failure", because, title=because)
    return Hit(evidence, "unknown", f"{because}; toolkit does not know which files the host has in {folder}")


@rule(
    "loader-refuses-program",
    "The loader refuses to start the program: a symbol or a symbol version is missing",
    severity="error",
    fix="install libraries of the release that the program was built with, or build the program in the image",
    source="ld.so(8), elf(5): .gnu.version_r, .gnu.version_d; tests/matrix: image pmix-foreign",
    facts=("image.refused", "image.programs"),
    modes=_OWN_MODES,
)
def loader_refuses_program(case: Case) -> Hit | None:
    """Before a program starts, the loader checks the symbol versions that each library must define, and the
    symbols that the program needs at start. If a library has the right name but lacks a symbol or symbol
    version that the program needs, the program fails.
    """
    case.ask("image.refused", failed_only=True)
    image = case.original_facts
    if not image.refused or set(image.programs) - set(image.refused):
        return None
    program, line = next(iter(image.refused.items()))
    evidence = (f"image: {line}",)
    asked = launch_search_path(case.host_facts, case.plan)
    if asked is not None and asked != image.environment.get("LD_LIBRARY_PATH"):
        why = (
            f"{line}; toolkit does not know whether {program} finds another library in "
            f"LD_LIBRARY_PATH={asked}"
        )
        return Hit(evidence, "unknown", why)
    return Hit(evidence, "loader-failure", f"the loader says: {line}", title=f"The loader says: {line}")


@rule(
    "programs-disagree",
    "Programs in the image load different MPIs, which need different launch modes",
    severity="warning",
    fix=_NAME_IT,
    source="tests/matrix: image two-programs",
    facts=("image.programs", "image.program"),
    modes=_OWN_MODES,
)
def programs_disagree(case: Case) -> Hit | None:
    """The MPI that the program loads decides which launch modes work. Without a command, toolkit does not
    know which program the job will start.
    """
    if case.request.has_one_rank:
        return None
    found = families(case.original_facts)
    if not found:
        return None
    kinds = [f"{_some(users)} load{'s' * (len(users) == 1)} {mpi_name(mpi)}" for mpi, users in found]
    return Hit(case.cite("image.programs"), "unknown", "; ".join(kinds), fix=f"{_NAME_IT}; or {TRY_IT}")


@rule(
    "launcher-in-ranks",
    "Each rank starts a second launcher, which starts more ranks",
    severity="error",
    fix="leave out the second launcher, and give only the program: toolkit starts the ranks",
    source="tests/matrix: image trap-script-runs-mpirun",
    facts=("image.program",),
)
def launcher_in_ranks(case: Case) -> Hit | None:
    """A script that was written for a single machine may call mpirun itself. toolkit starts the script once
    for each rank, so mpirun also runs once for each rank. Each mpirun reads the variables of the launcher
    that started the script. Each mpirun then fails, or starts a separate MPI world.
    """
    program = case.image_facts.program
    if program is None or not program.chain or case.request.has_one_rank:
        return None
    name, steps = posixpath.basename(program.chain[-1]), " starts ".join(program.chain)
    return (
        Hit((f"image: {steps}",), "unknown", f"each rank starts {name}: {steps}")
        if name in LAUNCHERS
        else None
    )


@rule(
    "program-joins-no-ranks",
    "The program does not use MPI, so each rank works alone",
    severity="error",
    fix="start a program that uses MPI; for nccl-tests, build the tests with `make MPI=1`",
    source="NVIDIA/pyxis issue 60 (`srun --mpi=pmi2 … all_reduce_perf`); NVIDIA/nccl-tests:README.md, MPI=1",
    facts=("image.program",),
    modes=_BY_LAUNCHER,
    programs=("serial",),
)
def program_joins_no_ranks(case: Case) -> Hit | None:
    """The launcher starts one copy of the program for each rank. A program without MPI does not look for the
    other copies, so each copy does all the work.
    """
    if case.request.has_one_rank:
        return None
    program = case.image_facts.program
    command = program.command if program else case.request.command
    name = command[0] if command else "the program"
    because = (
        f"{name} loads no MPI, so each of its {case.request.nodes * case.request.ranks_per_node} copies "
        "works alone"
    )
    return Hit((f"command: {name}",), "singletons", because)


@rule(
    "entry-point-skipped",
    "The image's entry point sets variables, and `exec` skips the entry point",
    severity="warning",
    fix="start the program through the entry point: `toolkit launch --image IMAGE -- SCRIPT COMMAND`",
    source="Apptainer user guide: run starts the runscript, exec does not",
    facts=("image.entry_script", "image.entry_sets"),
    advice=True,
)
def entry_point_skipped(case: Case) -> Hit | None:
    """Docker starts a command through the image's entry point. toolkit's jobs start the command with the
    runtime's subcommand `exec`, which skips the entry point. Without the entry point, the command lacks the
    variables that the entry point sets, such as a library path.
    """
    image = case.image_facts
    if not image.entry_sets or (image.program and image.entry_script in image.program.chain):
        return None
    script, names = image.entry_script, ", ".join(image.entry_sets)
    evidence = tuple(f"image: {script}: {name}={value}" for name, value in image.entry_sets.items())
    command = shlex.join(image.program.command) if image.program else "COMMAND"
    fix = (
        f"start the program through the entry point: `toolkit launch --image IMAGE -- "
        f"{shlex.quote(script)} {command}`"
    )
    return Hit(evidence, title=f"{script} sets {names}, and `exec` skips this entry point", fix=fix)


def _some(programs: tuple[str, ...]) -> str:
    first, *others = programs
    return f"{first} and {len(others)} more" if others else first


WITHOUT_MPI: tuple[ProgramName, ...] = ("torch", "jax", "tf-config")
_FACTS: dict[ProgramName, str] = {"torch": "pytorch", "jax": "jax", "tf-config": "tensorflow"}


@rule(
    "ranks-not-told",
    "The container starts without the variables that give a rank its number",
    severity="error",
    fix=(
        "leave out `--cleanenv`, `--containall` and `env -i`, and "
        "unset only the variables that cause problems"
    ),
    source="Apptainer user guide, environment; srun(1), output environment variables",
    facts=("host.environment", "image.program"),
    programs=WITHOUT_MPI,
)
def ranks_not_told(case: Case) -> Hit | None:
    """The job script reads each rank's number from variables of the launcher, for example
    ``SLURM_PROCID`` or ``OMPI_COMM_WORLD_RANK``. Without the launcher's variables, the rank's number is
    empty, and the program rejects an empty number.
    """
    case.ask("host.environment")
    found = clearing_options(case)
    # A starter (a command that starts the ranks of a node, such as torchrun) numbers its ranks itself.
    numbered = RANKS_FILE in case.plan.wrapper and not case.plan.starter
    if not found and numbered and "SLURM_PROCID" in case.plan.unset:
        return Hit(("plan: SLURM_PROCID is removed",), "init-failure", "a rank does not find its rank number")
    if not found:
        return None
    because = f"{next(iter(found))} removes SLURM_*, from which each rank reads its rank number"
    return Hit(tuple(dict.fromkeys(found.values())), "init-failure", because)


@rule(
    "image-lacks-framework",
    "The image does not have the framework that the program uses",
    severity="warning",
    fix="use an image that has the framework, or bind a folder that contains the framework",
    source="toolkit image inspect IMAGE lists the frameworks of an image",
    facts=("image.pytorch", "image.jax", "image.tensorflow"),
    programs=WITHOUT_MPI,
    advice=True,
)
def image_lacks_framework(case: Case) -> Hit | None:
    """toolkit reports only a warning, because the program may load the framework from outside the image. For
    example, your project may have a virtual environment that contains the framework.
    """
    fact = f"image.{_FACTS[case.plan.program]}"
    case.ask(fact)
    if case.state(fact) == "known":
        return None
    title = f"The image does not have {program_of_name(case.plan.program).TITLE}"
    return Hit(case.cite(fact), title=title)
