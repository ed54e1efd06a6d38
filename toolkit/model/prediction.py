"""Launch modes, their predicted outcomes, and their launch commands."""

from typing import Literal, get_args

import msgspec

from toolkit.model.finding import Finding, LaunchFault

Mode = Literal[
    "srun-pmix",
    "srun-pmi2",
    "srun-none",
    "mpirun-host",
    "mpirun-container",
    "bind",
    "gloo",
    "torch",
    "jax",
    "tf-config",
]
"""Launch modes: the ways in which toolkit can start the ranks of a job. The names do not change between
releases.
"""

MODES: tuple[Mode, ...] = get_args(Mode)

MPI_MODES: tuple[Mode, ...] = MODES[: MODES.index("gloo")]
"""Launch modes in which the ranks can find each other through MPI."""

ProgramName = Literal["mpi", "horovod", "torch", "jax", "tf-config", "serial"]
"""How the ranks of a program find each other; :mod:`toolkit.program` has a module for each name."""

PROGRAMS: tuple[ProgramName, ...] = get_args(ProgramName)

Starter = Literal["", "torchrun", "accelerate", "deepspeed"]
"""The program, such as torchrun, that starts the ranks of a node. The value is empty if the user's command
does not name such a program.
"""

Outcome = Literal[
    "ok",
    "singletons",
    "wrong-size",
    "init-failure",
    "loader-failure",
    "comm-failure",
    "hang",
    "crash",
    "unavailable",
    "unknown",
]


Accelerator = Literal["gpu", "gpu-failure", "cpu-only", "not-asked", "unknown"]
"""The outcome for the GPUs of a launch. ``gpu``: ranks use the GPUs. ``gpu-failure``: the program fails
because of a GPU driver or a GPU library. ``cpu-only``: ranks run on the CPU although the job has GPUs.
``not-asked``: the job requests no GPUs.
"""

Basis = Literal["measured", "derived", "beyond"]
"""The basis of a prediction. ``measured``: a recorded launch has this launch's mode, its releases of MPI and
PMIx, and its size (one or several nodes, one or several ranks per node). If a rule decides the
outcome of this launch, this rule also decided the outcome of at least one recorded launch. ``derived``: each
property of this launch occurs in a recorded launch, but the prediction is not ``measured``. ``beyond``: the
host, the image or the job has a property that no recorded launch has.
"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of nodes and ranks of a job, and the user's choices for its ranks.

    ``batch`` is true if the launcher starts in a batch script, as in ``toolkit launch``. In a batch script,
    the launcher runs on a node that also runs ranks. ``allocation`` is true if the job has a Slurm
    allocation; without an allocation, mpirun starts all ranks on its own machine. ``env`` contains the
    variables to set inside the container. ``binds`` are mounts, ``SRC[:DST[:OPTS]]``. ``workdir`` is the
    ranks' working folder inside the container. ``cpus_per_rank`` is a number of cores. ``cpu_bind`` and
    ``gpu_bind`` are the values of srun's ``--cpu-bind`` and ``--gpu-bind``. ``gpus`` is true if ranks get
    GPUs. ``directory`` is the folder of the run; it is empty if unknown. ``program`` is the user's choice of
    how the ranks find each other (``--program``), or ``None``. ``command`` is the command of each rank; it is
    empty if unknown. ``joins`` names the libraries with which the user's script connects its ranks; it is
    empty if unknown. ``says`` contains the variables and options in the command or the script that affect how
    the ranks find each other, with their values.
    """

    nodes: int = 2
    ranks_per_node: int = 1
    mode: Mode | None = None
    batch: bool = True
    allocation: bool = True
    env: dict[str, str] = {}
    binds: tuple[str, ...] = ()
    workdir: str = ""
    cpus_per_rank: int | None = None
    cpu_bind: str = ""
    gpu_bind: str = ""
    gpus: bool = False
    directory: str = ""
    user_site: bool = False
    """True if Python in the container may load packages from the user's ~/.local."""
    program: ProgramName | None = None
    command: tuple[str, ...] = ()
    joins: frozenset[str] = frozenset()
    says: dict[str, str] = {}
    projects: tuple[str, ...] = ()
    """Folders of the user's own modules; the launch adds them to PYTHONPATH."""
    faults: tuple[LaunchFault, ...] = ()
    """Faults of the command, such as a program that the image lacks. The tuple is empty if toolkit found no
    fault or did not check the command.
    """

    @property
    def has_one_rank(self) -> bool:
        """True if the job has only one rank, so that a world of size 1 is correct."""
        return self.nodes * self.ranks_per_node == 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a launch command, without shell quotes. toolkit adds the quotes when it writes the job
    script.

    ``launcher`` lists the launcher and its options, as in ``("srun", "--mpi=pmix")``; :mod:`toolkit.launch`
    adds the numbers of nodes and ranks. ``inside`` is true if the launcher runs inside the container
    (``mpirun-container``); otherwise the launcher runs on the host and starts the container. ``container``
    lists options for ``singularity exec``. ``env`` contains variables to set inside the container. ``unset``
    names variables of the host that must not reach the container. ``binds`` are mounts, ``SRC[:DST[:OPTS]]``.
    ``wrapper`` lists the words that precede the ranks' command inside the container. ``program`` says how the
    ranks find each other. ``starter`` is a program, such as torchrun, that the launcher starts once on each
    node. This program then starts the ranks of the node.
    """

    mode: Mode
    launcher: tuple[str, ...]
    inside: bool = False
    container: tuple[str, ...] = ()
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    wrapper: tuple[str, ...] = ()
    program: ProgramName = "mpi"
    starter: Starter = ""


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The predicted outcome of one launch mode.

    ``because`` is the reason for the outcome. ``findings`` are the ids of the findings about this launch
    mode. ``missing`` names the unknown facts that rules for this mode need. If the outcome depends on timing,
    ``outcome`` is the most frequent outcome, and ``by_chance`` lists the other possible outcomes. For
    example, after one rank fails, the launcher either stops the other ranks (``comm-failure``) or waits for
    them (``hang``). ``beyond`` names the properties of this launch that no recorded launch has.
    """

    mode: Mode
    outcome: Outcome
    because: str
    by_chance: tuple[Outcome, ...] = ()
    accelerator: Accelerator = "not-asked"
    basis: Basis = "derived"
    beyond: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    plan: Plan | None = None

    @property
    def why(self) -> str:
        """Return why toolkit predicts the outcome, and which other outcomes are possible."""
        others = " or ".join(outcome for outcome in self.by_chance if outcome != "ok")
        because = f"{self.because}; some launches end in {others} instead" if others else self.because
        because = f"{because}; some launches work" if "ok" in self.by_chance else because
        return f"{because}; not measured with {', '.join(self.beyond)}" if self.shown == "ok?" else because

    @property
    def works(self) -> bool:
        """Return whether toolkit predicts that the ranks start, and that the ranks can use their GPUs."""
        return self.outcome == "ok" and self.accelerator != "gpu-failure"

    @property
    def shown(self) -> str:
        """Return the outcome as toolkit prints it.

        Instead of ``ok``, toolkit prints ``gpu-failure`` if the ranks cannot use their GPUs, or ``ok?`` if
        the launch has a property that no recorded launch has.
        """
        if self.outcome == "ok" and not self.works:
            return self.accelerator
        return "ok?" if self.outcome == "ok" and self.basis == "beyond" else self.outcome

    def foretells(self, outcome: Outcome) -> bool:
        """Return whether ``outcome`` is the predicted outcome or one of the outcomes in ``by_chance``."""
        return outcome == self.outcome or outcome in self.by_chance


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """All predictions and findings for one launch. ``chosen`` is the launch mode that toolkit recommends, or
    ``None`` if toolkit predicts that no mode works.
    """

    predictions: tuple[Prediction, ...]
    findings: tuple[Finding, ...]
    chosen: Mode | None

    def of(self, mode: Mode) -> Prediction:
        """Return the prediction for the launch mode ``mode``."""
        return next(p for p in self.predictions if p.mode == mode)

    def ok(self, mode: Mode) -> bool:
        """Return whether toolkit predicts that the launch mode ``mode`` works; false if there is no
        prediction for this mode.
        """
        return any(p.mode == mode and p.works for p in self.predictions)
