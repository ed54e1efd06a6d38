"""Rules about variables and configuration files that change the behaviour of an MPI in the container."""

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.host_variables import harmful_variables
from toolkit.engine.rule import MPI_MODES, Hit, rule
from toolkit.engine.settings import effects
from toolkit.engine.wireup import leaves_out_home


@rule(
    "setting-breaks-mpi",
    "The MPI in the image does not work with a setting that the launch passes to the container",
    severity="error",
    fix=(
        "remove the setting: unset the variable, leave out `--env`, or edit the file that the finding names; "
        "`toolkit launch` already unsets the host's variables that configure an MPI"
    ),
    source="recipes/knowledge/settings.toml; tests/matrix: 'env OMPI_MCA_*', 'env UCX_TLS=rc'",
    facts=(
        *("image.mpi", "host.environment", "host.mca_params", "host.interfaces", "host.infiniband"),
        *("host.fabrics", "image.mpi.components", "image.mpi.device", "image.mpi.plugins", "image.pmix"),
        *("image.pmix_plugins", "image.ucx_transports", "image.libfabric_providers"),
    ),
    modes=MPI_MODES,
)
def setting_breaks_mpi(case: Case) -> Hit | None:
    """Apptainer passes variables of the host into the container. Variables such as ``OMPI_MCA_btl=openib``
    and ``OPAL_PREFIX=…`` configure the host's MPI. The MPI in the image also reads these variables, and may
    fail because it lacks the components or folders that they name.
    """
    mpi = case.image.mpi
    reads_home = mpi is not None and mpi.implementation == "openmpi" and not leaves_out_home(case)
    found, unknown = effects(case)
    bad = next((e for e in found if e.fails), None)
    if bad:
        evidence = (bad.origin, *case.cite("image.mpi"))
        return Hit(evidence, bad.outcome, bad.because, source=bad.source, stage=bad.stage)
    if unknown:
        raise Undecided(*unknown)
    if reads_home:
        case.ask("host.mca_params", failed_only=True)
    doubtful = [e for e in found if e.outcome == "unknown"]
    if not doubtful:
        return None
    because = "; ".join(e.because for e in doubtful)
    return Hit(
        tuple(e.origin for e in doubtful),
        "unknown",
        because,
        "The effect of a setting on the MPI in the image is unknown",
        "leave out the setting; or try the launch: `toolkit launch --force` (the job checks the world size "
        "before the program starts)",
        severity="warning",
    )


@rule(
    "host-settings-leak",
    "The host has settings for its own MPI, and toolkit keeps these settings out of the container",
    severity="warning",
    fix="change nothing: toolkit unsets these settings; if the container needs a setting, pass it with "
    "`toolkit launch --env`",
    source="Apptainer user guide, environment; tests/matrix: 'env OMPI_MCA_*', 'env UCX_TLS=rc'",
    facts=("host.environment",),
    advice=True,
)
def host_settings_leak(case: Case) -> Hit | None:
    """Environment modules and shell profiles set variables for the host's MPI. A job inherits these
    variables from the shell in which you submit the job.
    """
    case.ask("host.environment")
    names = harmful_variables(case.host, case.mode)
    if not names:
        return None
    values = case.host.environment
    return Hit(tuple(f"host: {n}={values[n]}" if values[n] else f"host: {n} is set" for n in names))


@rule(
    "mca-params-file",
    "A settings file in the home folder also affects Open MPI in the container",
    severity="warning",
    fix="remove the settings from ~/.openmpi/mca-params.conf, or start the container with `--no-home`",
    source="open-mpi/ompi:docs/mca.rst; tests/matrix: 'bad ~/.openmpi/mca-params.conf'",
    facts=("host.mca_params", "image.mpi"),
    advice=True,
)
def mca_params_file(case: Case) -> Hit | None:
    """The runtime mounts the home folder, so the image's Open MPI reads ~/.openmpi/mca-params.conf. The
    settings in this file may be meant for the host's MPI only.
    """
    case.ask("host.mca_params", "image.mpi")
    mpi, lines = case.image.mpi, case.host.mca_params
    if mpi is None or not lines or mpi.implementation != "openmpi" or leaves_out_home(case):
        return None
    said = (f"{name} = {value}" if value else f"{name} is set" for name, value in lines.items())
    return Hit(tuple(f"host: ~/.openmpi/mca-params.conf: {line}" for line in said))
