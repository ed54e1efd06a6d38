"""Variables and files that steer an MPI and reach it in the container."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, MPICH, absent, case, host, image, mpi, unread
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

HIDING = {"PMIX_MCA_mca_base_component_path": "/opt/host/pmix"}
LEAKED = host(environment={"OMPI_MCA_btl": "openib", "APPTAINER_NV": ""})
NAMED = {"mca_params": {"btl": "openib"}}
BOGUS = host(environment={"MPIR_CVAR_CH4_NETMOD": "bogus"})


def netmods(device):
    """Return an image with an MPICH of these network modules."""
    return image(mpi=msgspec.structs.replace(MPICH, device=device))


FIRES = {
    "setting-breaks-mpi": [
        case(LEAKED),
        case(given={"OMPI_MCA_unheard_of": "1"}),
        case(host(**NAMED)),
        case(BOGUS, netmods("ch4:ucx,ofi"), "srun-pmi2"),
        case(of=image(pmix_plugins=True), given=HIDING),
    ],
    "host-settings-leak": [case(LEAKED), case(host(environment={"OMPI_MCA_btl": ""}))],
    "mca-params-file": [case(host(**NAMED))],
}
QUIET = {
    "setting-breaks-mpi": [
        case(),
        case(LEAKED, unset=("OMPI_MCA_btl",)),
        case(LEAKED, absent(IMAGE, "mpi")),
        case(given=HIDING),
        case(of=image(pmix="1.2.1", pmix_plugins=None), given=HIDING),
        case(given={"OMPI_MCA_btl_tcp_if_include": "eth0"}),
        case(host(**NAMED), container=("--no-home",)),
        case(unread(HOST, "mca_params"), image(mpi=MPICH)),
        case(BOGUS, netmods("ch4:ucx"), "srun-pmi2"),
        case(BOGUS, netmods("ch4:ofi"), "srun-pmi2"),
        case(host(environment={"MPIR_CVAR_CH4_NETMOD": "OFI"}), netmods("ch4:ucx,ofi"), "srun-pmi2"),
    ],
    "host-settings-leak": [case(), case(host(environment={"SLURM_MPI_TYPE": "pmix"}))],
    "mca-params-file": [
        case(),
        case(host(**NAMED), image(mpi=MPICH)),
        case(host(**NAMED), container=("--no-home",)),
    ],
}
UNDECIDED = {
    "setting-breaks-mpi": [
        case(LEAKED, mpi(components={})),
        case(unread(HOST, "mca_params")),
        case(BOGUS, netmods("ch4"), "srun-pmi2"),
        case(of=image(pmix_plugins=None), given=HIDING),
        case(of=unread(IMAGE, "pmix"), given=HIDING),
    ],
    "mca-params-file": [case(unread(HOST, "mca_params"))],
}
OUTCOMES = {"setting-breaks-mpi": "init-failure"}


def test_a_device_that_the_host_lacks_ends_ucx_and_one_of_a_fabric_may_be_there():
    def outcome(value, device="ch4:ucx", **facts):
        there = host(environment={"UCX_NET_DEVICES": value}, **facts)
        return judge(case(there, netmods(device), "srun-pmi2"), RULES)[0].outcome

    none: dict[str, object] = {"infiniband": (), "fabrics": (), "interfaces": ("eth0", "lo")}
    assert outcome("mlx5_0:1", **none) == "init-failure"
    assert outcome("eth0", **none) == "ok"
    assert outcome("all", **none) == "ok"
    assert outcome("mlx5_0:1", device="ch4:ofi", **none) == "ok"
    assert outcome("mlx5_0:1", infiniband=("mlx5_0",)) == "unknown"
    assert outcome("mlx5_0:1", interfaces=None) == "unknown"


def test_open_mpi_1_ends_in_mpi_init_where_openib_finds_no_device():
    there = host(environment={"OMPI_MCA_btl": "openib"}, infiniband=(), fabrics=())
    components = {"btl": ("openib", "self", "sm", "tcp"), "pml": ("ob1",)}
    found = {
        version: judge(case(there, mpi(version=version, components=components)), RULES)[0].outcome
        for version in ("1.10.2", "4.1.4")
    }
    assert found == {"1.10.2": "init-failure", "4.1.4": "crash"}
