"""Find the settings that reach the ranks: from host, image, plan and configuration files."""

from toolkit.engine.case import Case
from toolkit.engine.host_variables import affects_mpi, name_inside, runtime_prefixes, slurm_variables
from toolkit.engine.wireup import Offer, clearing_options, leaves_out_home, offer

_OF_THE_IMAGE = {
    *("PYTHONPATH", "PYTHONHOME", "OPAL_PREFIX", "OPAL_LIBDIR", "PMIX_PREFIX", "PMIX_INSTALL_PREFIX"),
    *("PRTE_PREFIX", "OMPI_MCA_mca_base_component_path", "PMIX_MCA_mca_base_component_path"),
}
"""Variables that toolkit ignores if the image sets them, because they then name folders of the image."""

_OF_SLURM = frozenset(("SLURM_NODELIST",))
"""Variables that Slurm sets in each job. They change the behaviour of an MPI only if the image replaces their
values.
"""


def settings_in_force(case: Case) -> dict[str, tuple[str, str]]:
    """Return the settings that reach the ranks: name → (value, origin).

    If several origins set the same name, the last of these origins decides:

    1. a configuration file of the image
    2. a configuration file in the home folder
    3. the host's variables
    4. the image's variables
    5. the host's variables with a prefix such as APPTAINERENV_
    6. the variables that the launch sets

    Sources: apptainer/apptainer:internal/pkg/runtime/engine/apptainer/process_linux.go; measured: FI_PROVIDER
    of host and image.
    """
    plain, meant = _set_by_host(case)
    inherited = {name: pair for name, pair in plain.items() if name not in case.image_facts.environment}
    own = {name: pair for name, pair in _set_in_image(case).items() if name in _OF_SLURM}
    found = _set_in_files(case) | _set_in_home(case) | inherited | _set_in_image(case) | meant
    for name, value in case.plan.env.items():
        where = "request: --env" if name in case.request.env else "plan:"
        found[name] = (value, f"{where} {name}={value}")
    return {name: pair for name, pair in found.items() if affects_mpi(name) or pair == own.get(name)}


IN_FILE = "image: mca-params.conf:"
"""The first words of the origin text for a setting from a configuration file of the image."""


def _set_in_files(case: Case) -> dict[str, tuple[str, str]]:
    """Return settings in configuration files of the image. The result is empty in the mode ``bind``, because
    the host's mounted MPI does not read the image's files.
    """
    if case.mode == "bind":
        return {}
    return {name: (value, f"{IN_FILE} {name}={value}") for name, value in case.image_facts.settings.items()}


def _set_in_home(case: Case) -> dict[str, tuple[str, str]]:
    if leaves_out_home(case):
        return {}
    where = "host: ~/.openmpi/mca-params.conf"
    return {f"OMPI_MCA_{name}": (value, where) for name, value in (case.host_facts.mca_params or {}).items()}


def setting_value(case: Case, name: str) -> str | None:
    """Return the value of a setting that reaches the ranks; ``None`` if no origin sets it."""
    return settings_in_force(case).get(name, (None, ""))[0]


def _set_in_image(case: Case) -> dict[str, tuple[str, str]]:
    return {
        name: (value, f"image: ENV {name}={value}")
        for name, value in case.image_facts.environment.items()
        if name not in _OF_THE_IMAGE
    }


def _set_by_host(case: Case) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """Return two tables of the host's variables. The first table has variables that keep their names in the
    container, including variables that Slurm's PMIx plugin sets. This table is empty if an option such as
    --cleanenv removes these variables. The second table has variables with a prefix such as APPTAINERENV_ on
    the host. The runtime sets these variables in the container without the prefix.

    A variable with the runtime's own prefix has precedence over a variable with Singularity's prefix
    (apptainer/apptainer:internal/pkg/util/env/create.go at v1.4.5, overridesForContainerEnv).
    """
    plain: dict[str, tuple[str, str]] = {}
    meant: dict[str, tuple[str, str]] = {}
    for name in sorted(set(case.host_facts.environment) - set(case.plan.unset)):
        found = (case.host_facts.environment[name], f"host: {name}={case.host_facts.environment[name]}")
        inside = name_inside(name)
        if inside is None:
            plain[name] = found
        elif name.startswith(runtime_prefixes(case.host_facts)):
            meant.setdefault(inside, found)
    serves = case.mode in {"srun-pmix", "bind"} and offer(case) == Offer(pmix="slurm")
    for name, value in (slurm_variables(case.host_facts) if serves else {}).items():
        if name not in case.plan.unset:
            plain[name] = (value, f"host: scontrol show config: PMIxEnv: {name}={value}")
    return ({} if clearing_options(case) else plain), meant
