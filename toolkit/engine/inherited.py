"""Variables of the host that a job would inherit, and what they do to an MPI in a container."""

from fnmatch import fnmatchcase

from toolkit import knowledge
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode

_RUNTIMES = ("APPTAINER", "SINGULARITY")


def obeyed(host: HostFacts) -> tuple[str, ...]:
    """Return what the names of variables begin with that the host's runtime obeys, the one that counts first.

    Apptainer reads those of Singularity too, and its own before them (apptainer/apptainer:internal/pkg/util/
    env/env.go at v1.4.5, ApptainerPrefixes); Singularity of either kind knows its own alone (sylabs/
    singularity:cmd/internal/cli/singularity.go at v3.8.4 and v4.3.7, envPrefix).
    """
    found = host.runtime
    return _RUNTIMES[1:] if found is not None and found.name.startswith("singularity") else _RUNTIMES


def harmful(host: HostFacts, mode: Mode) -> tuple[str, ...]:
    """Return the variables of the host that a job would inherit and that are meant for its own MPI.

    Parameters of a network driver are not among them.
    """
    needed = needed_inside(mode)
    return tuple(name for name in sorted(host.environment) if _is_harmful(name) and not _is_one(name, needed))


def needed_inside(mode: Mode) -> tuple[str, ...]:
    """Return patterns of settings that the MPI in a container needs of the host."""
    known = knowledge.mpi().variables
    return (*known.fabric, *(known.mounted if mode == "bind" else ()))


def _is_one(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name_inside(name) or name, pattern) for pattern in patterns)


def set_by_slurm(host: HostFacts) -> dict[str, str]:
    """Return what Slurm's PMIx plugin sets for its server and in each rank, whatever a job has set.

    SchedMD/slurm:src/plugins/mpi/pmix/pmixp_info.c at slurm-24-11-5-1, _parse_pmix_conf_env; mpi.conf(5).
    """
    said = host.slurm.settings.get("PMIxEnv", "") if host.slurm else ""
    pairs = (pair.partition("=") for pair in said.split(";"))
    return {name.strip(): value.strip() for name, sign, value in pairs if sign}


def _is_harmful(name: str) -> bool:
    return steers_mpi(name_inside(name) or name) or container_option(name) is not None


def name_inside(name: str) -> str | None:
    """Return the name under which a variable is set in the container, if it is meant for that alone."""
    runtime, sign, inside = name.partition("ENV_")
    return inside if sign and runtime in _RUNTIMES else None


def steers_mpi(name: str) -> bool:
    """Tell whether a variable changes what an MPI does, or which Python modules it is called from."""
    known = knowledge.mpi().variables
    return name in {*known.paths, *known.harmful} or name.startswith(known.harmful_prefixes)


def container_option(name: str) -> str | None:
    """Return the option that a variable stands for, of those that a job must not inherit.

    ``cleanenv`` for ``APPTAINER_CLEANENV``.
    """
    _, _, option = name.partition("_")
    return asked_by(name) if option in knowledge.mpi().variables.container_options else None


def asked_by(name: str) -> str | None:
    """Return the option that a variable of the runtime stands for: ``no-home`` for ``APPTAINER_NO_HOME``."""
    runtime, _, option = name.partition("_")
    return option.lower().replace("_", "-") if runtime in _RUNTIMES and option else None
