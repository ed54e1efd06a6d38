"""Find the host's environment variables that a job inherits and that affect an MPI in a container."""

from fnmatch import fnmatchcase

from toolkit import knowledge
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode

_RUNTIMES = ("APPTAINER", "SINGULARITY")


def runtime_prefixes(host: HostFacts) -> tuple[str, ...]:
    """Return the prefixes of the variables that the host's container runtime reads, in order of precedence.

    Apptainer reads its own variables, then Singularity's variables
    (apptainer/apptainer:internal/pkg/util/env/env.go at v1.4.5, ApptainerPrefixes). Singularity and
    SingularityCE read only variables with the prefix SINGULARITY
    (sylabs/singularity:cmd/internal/cli/singularity.go at v3.8.4 and v4.3.7, envPrefix).
    """
    found = host.runtime
    return _RUNTIMES[1:] if found is not None and found.name.startswith("singularity") else _RUNTIMES


def harmful_variables(host: HostFacts, mode: Mode) -> tuple[str, ...]:
    """Return the names of inherited variables that a launch must remove: settings of the host's MPI, and
    options of the container runtime.

    The result excludes the variables that the MPI in a container needs, such as variables of network drivers
    (:func:`needed_patterns`).
    """
    needed = needed_patterns(mode)
    return tuple(name for name in sorted(host.environment) if _is_harmful(name) and not _is_one(name, needed))


def needed_patterns(mode: Mode) -> tuple[str, ...]:
    """Return patterns for the names of the host's variables that the MPI in a container needs."""
    known = knowledge.mpi().variables
    return (*known.fabric, *(known.mounted if mode == "bind" else ()))


def _is_one(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name_inside(name) or name, pattern) for pattern in patterns)


def slurm_variables(host: HostFacts) -> dict[str, str]:
    """Return the variables that Slurm's PMIx plugin sets for its server and in each rank.

    Sources: SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c at slurm-24-11-5-1, _parse_pmix_conf_env;
    mpi.conf(5).
    """
    said = host.slurm.settings.get("PMIxEnv", "") if host.slurm else ""
    pairs = (pair.partition("=") for pair in said.split(";"))
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def _is_harmful(name: str) -> bool:
    return affects_mpi(name_inside(name) or name) or container_option(name) is not None


def name_inside(name: str) -> str | None:
    """Return the name that a host variable with the prefix ``APPTAINERENV_`` or ``SINGULARITYENV_`` has in
    the container: ``X`` for ``APPTAINERENV_X``. Return ``None`` for any other variable.
    """
    runtime, sign, inside = name.partition("ENV_")
    return inside if sign and runtime in _RUNTIMES else None


def affects_mpi(name: str) -> bool:
    """Return whether a variable changes the behaviour of an MPI, or the folders in which Python searches for
    modules.
    """
    known = knowledge.mpi().variables
    return name in {*known.paths, *known.harmful} or name.startswith(known.harmful_prefixes)


def container_option(name: str) -> str | None:
    """Return the runtime option that a variable sets, if a job must not inherit this variable; otherwise
    ``None``.

    For example, the variable ``APPTAINER_CLEANENV`` sets the option ``cleanenv``.
    """
    _, _, option = name.partition("_")
    return option_of_variable(name) if option in knowledge.mpi().variables.container_options else None


def option_of_variable(name: str) -> str | None:
    """Return the runtime option that a variable sets, such as ``no-home`` for ``APPTAINER_NO_HOME``; ``None``
    if the variable sets no option.
    """
    runtime, _, option = name.partition("_")
    return option.lower().replace("_", "-") if runtime in _RUNTIMES and option else None
