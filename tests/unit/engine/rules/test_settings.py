"""Test the rules about variables and files of the host that change an MPI in the container."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, MPI, MPICH, absent, case, host, image, mpi, unread
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.model.mpifacts import ImageMpi

HIDING = {"PMIX_MCA_mca_base_component_path": "/opt/host/pmix"}
LEAKED = host(environment={"OMPI_MCA_btl": "openib", "APPTAINER_NV": ""})
NAMED = {"mca_params": {"btl": "openib"}}
BOGUS = host(environment={"MPIR_CVAR_CH4_NETMOD": "bogus"})


def netmods(device):
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
    by_ofi = host(environment={"UCX_NET_DEVICES": "mlx5_0:1", "MPIR_CVAR_CH4_NETMOD": "ofi"}, **none)
    assert judge(case(by_ofi, netmods("ch4:ucx,ofi"), "srun-pmi2"), RULES)[0].outcome == "ok"
    assert outcome("mlx5_0:1", infiniband=("mlx5_0",)) == "ok"
    assert outcome("mlx5_9:1", infiniband=("mlx5_0",)) == "init-failure"
    assert outcome("mlx5_0:1", interfaces=None) == "unknown"


def test_open_mpi_1_ends_in_mpi_init_where_openib_finds_no_device():
    there = host(environment={"OMPI_MCA_btl": "openib"}, infiniband=(), fabrics=())
    components = {"btl": ("openib", "self", "sm", "tcp"), "pml": ("ob1",)}
    found = {
        version: judge(case(there, mpi(version=version, components=components)), RULES)[0].outcome
        for version in ("1.10.2", "4.1.4")
    }
    assert found == {"1.10.2": "init-failure", "4.1.4": "crash"}


@every_row(
    ("version", "value", "outcome"),
    [
        ("3.1.6", "ib0", "init-failure"),
        ("4.0.1", "ib0", "init-failure"),
        ("4.0.2", "ib0", "ok"),
        ("3.1.6", "eth0", "ok"),
    ],
)
def test_ranks_read_which_interfaces_daemons_take_up_to_open_mpi_4_0_1(version, value, outcome):
    there = host(environment={"OMPI_MCA_oob_tcp_if_include": value}, interfaces=("eth0", "lo"))
    assert judge(case(there, mpi(version=version)), RULES)[0].outcome == outcome


FAST: dict[str, object] = {"infiniband": ("mlx5_0",), "fabrics": (), "interfaces": ("eth0", "ib0", "lo")}
ROCE: dict[str, object] = {**FAST, "link_layers": {"mlx5_0": "Ethernet"}}
SLINGSHOT: dict[str, object] = {
    "infiniband": (),
    "fabrics": ("slingshot",),
    "interfaces": ("eth0", "hsn0", "lo"),
}
PLAIN: dict[str, object] = {"infiniband": (), "fabrics": (), "interfaces": ("eth0", "lo")}
BOTH = {"ucx_transports": ("ib", "posix", "self", "tcp"), "libfabric_providers": ("cxi", "tcp", "verbs")}
COMPONENTS = {
    "btl": ("openib", "self", "tcp", "vader"),
    "mtl": ("ofi",),
    "pml": ("cm", "ob1", "ucx"),
    "shmem": ("mmap", "posix"),
    "smsc": ("cma",),
}


def foreseen(given: dict[str, str], network: dict[str, object], of: ImageMpi, **facts: object) -> str:
    there = image(mpi=of, **{**BOTH, **facts})
    mode = "srun-pmix" if of.implementation == "openmpi" else "srun-pmi2"
    only = tuple(r for r in RULES if r.id == "setting-breaks-mpi")
    return judge(case(host(**network), there, mode, given=given), only)[0].outcome


def open_mpi(version: str = "4.1.6", **changes: object) -> ImageMpi:
    return msgspec.structs.replace(MPI, **{"version": version, "components": COMPONENTS, **changes})


@every_row(
    ("given", "network", "outcome"),
    [
        # These settings come from centres' modules and vendors' images, on InfiniBand.
        ({"OMPI_MCA_pml": "ucx"}, FAST, "ok"),
        ({"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc,sm,self"}, FAST, "ok"),
        ({"OMPI_MCA_pml": "ucx", "UCX_NET_DEVICES": "mlx5_0:1"}, FAST, "ok"),
        ({"OMPI_MCA_pml": "ucx", "UCX_NET_DEVICES": "mlx5_9:1"}, FAST, "init-failure"),
        ({"OMPI_MCA_pml": "ucx", "UCX_TLS": "sm,self"}, FAST, "init-failure"),
        ({"OMPI_MCA_pml": "ucx", "UCX_TLS": "rc_mlx5,self"}, FAST, "unknown"),
        ({"OMPI_MCA_pml": "ucx"}, SLINGSHOT, "init-failure"),
        ({"OMPI_MCA_pml": "ucx"}, PLAIN, "init-failure"),
        ({"OMPI_MCA_pml": "cm"}, FAST, "ok"),
        ({"OMPI_MCA_pml": "cm", "FI_PROVIDER": "cxi"}, SLINGSHOT, "ok"),
        ({"OMPI_MCA_pml": "cm", "FI_PROVIDER": "^cxi"}, SLINGSHOT, "ok"),
        ({"OMPI_MCA_pml": "cm", "FI_PROVIDER": "psm2"}, SLINGSHOT, "init-failure"),
        ({"OMPI_MCA_pml": "cm"}, PLAIN, "init-failure"),
        ({"OMPI_MCA_pml": "^ucx", "OMPI_MCA_mtl": "ofi", "FI_PROVIDER": "cxi"}, SLINGSHOT, "ok"),
        ({"OMPI_MCA_btl": "openib,self,vader"}, FAST, "unknown"),
        ({"OMPI_MCA_btl": "openib,self,vader", "OMPI_MCA_btl_openib_allow_ib": "true"}, FAST, "ok"),
        ({"OMPI_MCA_btl": "openib,self,vader"}, ROCE, "ok"),
        ({"OMPI_MCA_btl": "openib,self,vader"}, PLAIN, "crash"),
        # Open MPI chooses UCX, which needs no btl. Source: OMPI_MCA_btl=self of glotzerlab/software, Delta.
        ({"OMPI_MCA_btl": "self"}, FAST, "ok"),
        ({"OMPI_MCA_btl": "self", "OMPI_MCA_pml": "ucx"}, ROCE, "ok"),
        ({"OMPI_MCA_btl": "self", "OMPI_MCA_pml": "ob1"}, FAST, "init-failure"),
        ({"OMPI_MCA_btl": "self", "UCX_TLS": "rc_mlx5,self"}, FAST, "unknown"),
        ({"OMPI_MCA_btl": "self", "UCX_TLS": "sm,self"}, FAST, "init-failure"),
        ({"OMPI_MCA_btl": "self"}, PLAIN, "init-failure"),
        ({"UCX_TLS": "rc,cuda_copy,sm,self"}, FAST, "ok"),
        ({"UCX_TLS": "sm,self"}, FAST, "ok"),
        ({"UCX_TLS": "rc_mlx5,self"}, FAST, "unknown"),
        ({"UCX_TLS": "rc"}, PLAIN, "ok"),
        ({"UCX_MEMTYPE_CACHE": "n", "UCX_POSIX_USE_PROC_LINK": "n"}, FAST, "ok"),
        ({"FI_PROVIDER": "cxi", "FI_CXI_ATS": "0"}, SLINGSHOT, "ok"),
        # These outcomes were measured on Ethernet with Open MPI 4.1.6 and 5.0.10.
        (
            {"OMPI_MCA_coll_hcoll_enable": "0", "OMPI_MCA_coll": "^hcoll", "OMPI_MCA_osc": "^rdma"},
            PLAIN,
            "ok",
        ),
        ({"OMPI_MCA_coll": "^basic"}, PLAIN, "unknown"),
        ({"OMPI_MCA_coll": "tuned"}, PLAIN, "unknown"),
        ({"OMPI_MCA_io": "romio321", "OMPI_MCA_mpi_warn_on_fork": "0"}, PLAIN, "ok"),
        ({"OMPI_MCA_opal_cuda_support": "false"}, PLAIN, "ok"),
        ({"OMPI_MCA_opal_cuda_support": "true"}, PLAIN, "unknown"),
        ({"OMPI_MCA_shmem": "posix"}, PLAIN, "ok"),
        ({"OMPI_MCA_shmem": "bogus"}, PLAIN, "init-failure"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "lo,docker0"}, PLAIN, "ok"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "127.0.0.1/8,docker0"}, PLAIN, "ok"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "10.0.0.0/8,lo"}, PLAIN, "unknown"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "docker0"}, PLAIN, "hang"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "lo,eth0"}, PLAIN, "hang"),
        ({"OMPI_MCA_btl_tcp_if_exclude": "lo"}, {**PLAIN, "interfaces": None}, "unknown"),
        ({"PMIX_MCA_gds": "^ds12", "PMIX_MCA_psec": "^munge", "PMIX_MCA_ptl": "^usock"}, PLAIN, "ok"),
        ({"PMIX_MCA_gds": "^hash"}, PLAIN, "init-failure"),
        ({"PMIX_MCA_psec": "^native,munge"}, PLAIN, "init-failure"),
        ({"PMIX_MCA_psec": "none"}, PLAIN, "init-failure"),
        ({"PMIX_MCA_psec": "none,native"}, PLAIN, "ok"),
    ],
    ids=lambda value: " ".join(f"{n}={v}" for n, v in value.items()) if isinstance(value, dict) else value,
)
def test_settings_of_open_mpi(given: dict[str, str], network: dict[str, object], outcome: str):
    assert foreseen(given, network, open_mpi()) == outcome


def test_settings_of_open_mpi_5():
    newer = open_mpi("5.0.10")
    assert foreseen({"OMPI_MCA_btl_tcp_if_exclude": "docker0"}, PLAIN, newer) == "comm-failure"
    assert foreseen({"OMPI_MCA_smsc": "^xpmem", "OMPI_MCA_accelerator": "^cuda"}, PLAIN, newer) == "ok"
    assert foreseen({"OMPI_MCA_smsc": "xpmem"}, PLAIN, newer) == "init-failure"
    older = open_mpi("3.1.6")
    assert foreseen({"OMPI_MCA_btl": "openib,self,vader"}, FAST, older) == "ok"
    with_psm2 = open_mpi(components={**COMPONENTS, "mtl": ("psm2",)})
    assert foreseen({"OMPI_MCA_pml": "cm"}, {**PLAIN, "infiniband": ("hfi1_0",)}, with_psm2) == "ok"


@every_row("name", ["ucx_transports", "libfabric_providers"])
def test_what_the_image_has_for_a_network_decides(name: str):
    given = {"OMPI_MCA_pml": "ucx" if name == "ucx_transports" else "cm"}
    assert foreseen(given, FAST, open_mpi(), **{name: ("tcp",)}) == "init-failure"
    assert foreseen(given, FAST, open_mpi(), **{name: None}) == "unknown"
    assert foreseen(given, {**FAST, "infiniband": None}, open_mpi()) == "unknown"


@every_row(
    ("device", "given", "network", "outcome"),
    [
        ("ch4:ucx", {"UCX_TLS": "rc,self,sm"}, FAST, "ok"),
        ("ch4:ucx", {"UCX_TLS": "sm,self"}, FAST, "init-failure"),
        ("ch4:ucx", {"UCX_TLS": "rc_mlx5"}, FAST, "unknown"),
        ("ch4:ucx", {"UCX_TLS": "rc,self,sm"}, PLAIN, "init-failure"),
        ("ch4:ucx", {"UCX_MEMTYPE_CACHE": "n", "UCX_IB_GPU_DIRECT_RDMA": "y"}, PLAIN, "ok"),
        ("ch4:ofi", {"FI_PROVIDER": "verbs;ofi_rxm"}, FAST, "ok"),
        ("ch4:ofi", {"FI_PROVIDER": "psm2"}, FAST, "init-failure"),
        ("ch4:ofi", {"FI_PROVIDER": "cxi"}, FAST, "unknown"),
        ("ch4:ofi", {"FI_PROVIDER": "cxi", "FI_CXI_ATS": "0"}, SLINGSHOT, "ok"),
        ("ch4:ofi", {"FI_PROVIDER": "verbs"}, PLAIN, "init-failure"),
        ("ch4:ofi", {"FI_TCP_IFACE": "ib0"}, PLAIN, "ok"),
        ("ch4:ofi", {"MPICH_GPU_SUPPORT_ENABLED": "1", "MPIR_CVAR_ENABLE_GPU": "0"}, PLAIN, "ok"),
    ],
)
def test_settings_of_mpich(device: str, given: dict[str, str], network: dict[str, object], outcome: str):
    assert foreseen(given, network, msgspec.structs.replace(MPICH, device=device)) == outcome


@every_row(("mode", "outcome"), [("mpirun-container", "init-failure"), ("srun-pmix", "ok")])
def test_a_list_of_nodes_in_the_image_misleads_mpirun_in_the_container(mode: str, outcome: str):
    listed = image(environment={"SLURM_NODELIST": "n0417"})
    assert judge(case(of=listed, mode=mode, nodes=1), RULES)[0].outcome == outcome
    inherited = host(environment={"SLURM_NODELIST": "n0417"})
    assert judge(case(inherited, mode=mode, nodes=1), RULES)[0].outcome == "ok"
