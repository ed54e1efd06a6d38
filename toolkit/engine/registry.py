"""The list of rules: to register one is a line here. The order is that of what happens in a launch."""

from toolkit.engine.rule import Rule
from toolkit.engine.rules import container, host, image, launcher, pmix

RULES: tuple[Rule, ...] = (
    host.slurm_absent,
    host.runtime_absent,
    host.too_few_nodes,
    host.user_namespaces_off,
    host.slurm_lacks_pmix,
    host.slurm_lacks_pmi2,
    host.host_launcher_absent,
    launcher.container_launcher_absent,
    host.architecture_differs,
    image.image_lacks_mpi,
    image.image_mpi_not_measured,
    container.environment_cleaned,
    image.image_lacks_pmix,
    image.image_lacks_pmi2,
    launcher.host_launcher_other_family,
    launcher.host_launcher_not_measured,
    launcher.host_launcher_leaks,
    launcher.launcher_prefix_half_removed,
    launcher.launcher_pmix_pair,
    launcher.rank_outside_step,
    launcher.container_launcher_fails,
    container.tmp_not_mounted,
    container.tmp_hidden,
    pmix.pmix_pair_fails,
    image.libfabric_missing,
    container.namespaces_split_a_node,
    image.mpi_release_defect,
    pmix.pmix_client_needs_care,
    host.host_settings_leak,
    host.given_settings_not_measured,
    host.mpi_default_none,
    image.stack_disagrees,
)
