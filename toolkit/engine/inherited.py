"""Variables of the host that a job would inherit, and what they do to an MPI in a container."""

from toolkit import knowledge
from toolkit.model.facts import HostFacts

_RUNTIMES = ("APPTAINER", "SINGULARITY")


def harmful(host: HostFacts) -> tuple[str, ...]:
    """Return the variables of the host that a job would inherit and that are meant for its own MPI."""
    return tuple(name for name in sorted(host.environment) if _is_harmful(name))


def _is_harmful(name: str) -> bool:
    for runtime in _RUNTIMES:
        # The runtime sets the rest of the name inside the container.
        name = name.removeprefix(f"{runtime}ENV_")
    return steers_mpi(name) or container_option(name) is not None


def steers_mpi(name: str) -> bool:
    """Tell whether a variable changes what an MPI does, or which Python modules it is called from."""
    known = knowledge.mpi().variables
    return name in {*known.paths, *known.harmful} or name.startswith(known.harmful_prefixes)


def container_option(name: str) -> str | None:
    """Return the option that a variable stands for: ``cleanenv`` for ``APPTAINER_CLEANENV``."""
    runtime, _, option = name.partition("_")
    if runtime not in _RUNTIMES or option not in knowledge.mpi().variables.container_options:
        return None
    return option.lower().replace("_", "-")
