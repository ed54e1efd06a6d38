"""The outcome of each launch mode, and the words of its command line."""

from typing import Literal, get_args

import msgspec

from toolkit.model.finding import Finding

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
"""Ways to start ranks that can be judged and launched; the names are stable."""

MODES: tuple[Mode, ...] = get_args(Mode)

MPI_MODES: tuple[Mode, ...] = MODES[: MODES.index("gloo")]
"""Modes in which the ranks can find each other through MPI."""

ProgramName = Literal["mpi", "horovod", "torch", "jax", "tf-config", "serial"]
"""How the ranks of a program find each other; each has a module in :mod:`toolkit.program`."""

PROGRAMS: tuple[ProgramName, ...] = get_args(ProgramName)

Starter = Literal["", "torchrun", "accelerate", "deepspeed"]
"""What starts the ranks of a node, if the user's command does."""

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
"""The outcome of the GPUs of a launch: used, refused by driver or library, left idle, not asked for."""

Basis = Literal["measured", "derived", "beyond"]
"""What a prediction is based on: such a launch was recorded; rules predict it from measured causes; the
host, the image or the shape is outside of all measurements.
"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of a job, and what the user wants for its ranks.

    ``batch`` says that the launcher starts in a batch script, as ``toolkit launch`` does it: then it shares a
    node with its own ranks. ``allocation`` says that there is an allocation of Slurm; without one an mpirun
    starts its ranks itself, on this machine. ``env`` is set inside the container, ``binds`` are
    ``SRC[:DST[:OPTS]]``, ``workdir`` is a folder in it. ``cpus_per_rank`` counts cores; ``cpu_bind`` and
    ``gpu_bind`` are srun's words. ``gpus`` says that ranks get GPUs. ``directory`` is the folder of the run,
    empty if unknown. ``program`` is the user's choice, ``command`` the command of each rank, and ``joins``
    the library by which its script joins its ranks; an unknown value is ``None`` or empty. ``says`` holds
    variables and arguments of command and script that set the rendezvous of the ranks.
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
    """Python reads the packages of the home folder, which the plan otherwise excludes."""
    program: ProgramName | None = None
    command: tuple[str, ...] = ()
    joins: frozenset[str] = frozenset()
    says: dict[str, str] = {}
    projects: tuple[str, ...] = ()
    """Folders of the user's own modules, which PYTHONPATH names."""

    @property
    def has_one_rank(self) -> bool:
        """True if the job has one rank: then a world of size 1 is intended."""
        return self.nodes * self.ranks_per_node == 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The words that make a launch mode work; unquoted until a script is rendered.

    ``launcher`` holds the launcher and its options, as in ``("srun", "--mpi=pmix")``; counts of nodes and
    ranks are added by :mod:`toolkit.launch`. ``inside`` says that the launcher runs within the container
    (``mpirun-container``); otherwise it runs on the host and starts the container. ``container`` holds
    options for ``singularity exec``. ``env`` is set inside the container, ``unset`` names host variables that
    must not reach it. ``binds`` are ``SRC[:DST[:OPTS]]``. ``wrapper`` holds words before the ranks' command,
    inside the container. ``program`` says how the ranks find each other; ``starter`` is the program that the
    launcher starts once a node, instead of the ranks.
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
    """The outcome of one mode; ``findings`` are ids, ``missing`` says what an unknown outcome lacks.

    ``by_chance`` are outcomes of other tries of the same launch. The outcome depends on timing: for example,
    one rank gives up, and its launcher stops the other ranks or waits for them. ``outcome`` is the more
    frequent one. ``beyond`` names properties that no recorded launch had.
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
        """Return why the outcome is predicted, and which other outcomes are possible."""
        others = " or ".join(outcome for outcome in self.by_chance if outcome != "ok")
        because = f"{self.because}; some launches end in {others} instead" if others else self.because
        because = f"{because}; some launches work" if "ok" in self.by_chance else because
        return f"{because}; not measured with {', '.join(self.beyond)}" if self.shown == "ok?" else because

    @property
    def works(self) -> bool:
        """Return whether the ranks start, and their GPUs too if the launch hands any in."""
        return self.outcome == "ok" and self.accelerator != "gpu-failure"

    @property
    def shown(self) -> str:
        """Return the outcome as users see it: ``ok?`` if no recorded launch is like this one."""
        if self.outcome == "ok" and not self.works:
            return self.accelerator
        return "ok?" if self.outcome == "ok" and self.basis == "beyond" else self.outcome

    def foretells(self, observed: Outcome) -> bool:
        """Return whether an observed outcome was predicted, or predicted as possible by chance."""
        return observed == self.outcome or observed in self.by_chance


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """All conclusions of the engine; ``chosen`` is ``None`` if no mode is predicted to work."""

    predictions: tuple[Prediction, ...]
    findings: tuple[Finding, ...]
    chosen: Mode | None

    def of(self, mode: Mode) -> Prediction:
        """Return the prediction for ``mode``."""
        return next(p for p in self.predictions if p.mode == mode)

    def ok(self, mode: Mode) -> bool:
        """Return whether ``mode`` applies to the program and is predicted to work."""
        return any(p.mode == mode and p.works for p in self.predictions)
