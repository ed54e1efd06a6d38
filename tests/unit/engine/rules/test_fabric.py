"""Test the rules about the network between nodes, and about memory that ranks share."""

from tests.unit.engine.whole import HOST, IMAGE, MPICH, absent, case, host, image, mpi, runtime, unread, with_
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.knowledge.fabric import fabrics_of

TCP_ALONE = {"pml": ("cm", "ob1"), "btl": ("self", "tcp", "vader")}
UCX_ALONE = {"pml": ("ob1", "ucx"), "btl": ("self", "tcp")}
OFI_ALONE = {"pml": ("cm", "ob1"), "mtl": ("ofi",), "btl": ("self", "tcp")}
PSM2 = {"pml": ("cm", "ob1"), "mtl": ("psm2",), "btl": ("self", "tcp")}
OPENIB = {"pml": ("ob1",), "btl": ("openib", "self", "tcp")}
OMNI_PATH = host(infiniband=("hfi1_0",))
ROCE = host(link_layers={"mlx5_0": "Ethernet", "mlx5_1": "Ethernet"})
IWARP = host(infiniband=("cxgb4_0",))
SLINGSHOT = host(infiniband=(), fabrics=("slingshot",))
ETHERNET = host(infiniband=())
CH4_OFI = image(mpi=with_(MPICH, device="ch4:ofi"))
EMBEDDED = absent(
    image(mpi=with_(CH4_OFI.mpi, needs=("libc.so.6",)), libfabric_providers=("tcp",)), "libfabric"
)
INTEL = with_(MPICH, implementation="intelmpi", device=None)
MVAPICH = with_(MPICH, implementation="mvapich2", device="ch3:mrail")
NO_VERBS = absent(image(ucx_transports=("tcp",), libfabric_providers=("tcp",)), "verbs_providers")
NO_NAMESPACE = runtime(setuid=True)

FIRES = {
    "fabric-devices-hidden": [
        case(runtime(name="podman", version="5.4.2"), container=("--ipc=host",)),
        case(runtime(name="pyxis", version="0.20")),
        case(runtime(name="enroot", version="3.5")),
    ],
    "mpi-lacks-fabric": [
        case(of=mpi(components=TCP_ALONE)),
        case(of=image(mpi=with_(MPICH, device="ch3:nemesis"))),
        case(of=mpi(components=OPENIB)),
        case(SLINGSHOT, mpi(components=UCX_ALONE)),
        case(ROCE, mpi(components=TCP_ALONE)),
        case(ROCE, mpi(components=OPENIB, version="5.0.3")),
        case(IWARP, mpi(components=UCX_ALONE)),
    ],
    "ucx-lacks-fabric": [
        case(of=with_(mpi(components=UCX_ALONE), ucx_transports=("cma", "tcp"))),
        case(of=with_(image(mpi=MPICH), ucx_transports=("tcp",))),
        case(OMNI_PATH, image(mpi=MPICH)),
    ],
    "libfabric-lacks-provider": [
        case(SLINGSHOT),
        case(OMNI_PATH, mpi(components=OFI_ALONE)),
        case(SLINGSHOT, CH4_OFI),
        case(OMNI_PATH, image(mpi=INTEL)),
        case(of=EMBEDDED),
        case(SLINGSHOT, image(mpi=with_(CH4_OFI.mpi, needs=("libc.so.6", "libfabric-1a2b3c4d.so.1.14.2")))),
    ],
    "verbs-driver-missing": [
        case(of=image(verbs_providers=())),
        case(of=image(verbs_providers=("mlx4",), ucx_transports=("tcp",), libfabric_providers=())),
        case(of=NO_VERBS),
        case(host(infiniband=("rdmap0s6", "ibp65s0")), NO_VERBS),
    ],
    "locked-memory-limited": [
        case(host(locked_memory=8 * 2**20)),
        case(host(locked_memory=65536)),
        case(host(locked_memory=2**32 - 1024)),
    ],
    "shared-memory-small": [case(host(shm=64 * 2**20))],
    "single-copy-unavailable": [
        case(ranks_per_node=2),
        case(host(ptrace_scope=1, runtime=NO_NAMESPACE.runtime), ranks_per_node=2),
    ],
}
QUIET = {
    "fabric-devices-hidden": [
        case(),
        case(runtime(name="pyxis", version="0.20"), nodes=1),
        case(runtime(name="podman", version="5.4.2"), container=("--device=/dev/infiniband",)),
        case(runtime(name="pyxis", version="0.20"), binds=("/dev/infiniband",)),
        case(runtime(name="pyxis", version="0.20"), image(environment={"MELLANOX_VISIBLE_DEVICES": "all"})),
        case(runtime(name="ch-run", version="0.31")),
    ],
    "mpi-lacks-fabric": [
        case(),
        case(ETHERNET, mpi(components=TCP_ALONE)),
        case(of=mpi(components=TCP_ALONE), nodes=1),
        case(of=mpi(components=OPENIB, version="3.1.6")),
        case(ROCE, mpi(components=OPENIB)),
        case(IWARP, mpi(components=OFI_ALONE)),
        case(OMNI_PATH, mpi(components=PSM2)),
        case(of=image(mpi=MVAPICH)),
        case(of=absent(IMAGE, "mpi")),
        case(host(infiniband=("unheard_of_0",)), mpi(components=TCP_ALONE)),
        case(host(infiniband=(), fabrics=("unheard-of",)), mpi(components=TCP_ALONE)),
    ],
    "ucx-lacks-fabric": [
        case(),
        case(of=image(mpi=MPICH)),
        case(of=image(ucx_transports=("tcp",))),
        case(ETHERNET, image(ucx_transports=("tcp",))),
    ],
    "libfabric-lacks-provider": [
        case(),
        case(SLINGSHOT, with_(CH4_OFI, libfabric_providers=("cxi", "tcp"))),
        case(ETHERNET, CH4_OFI),
        case(of=with_(EMBEDDED, libfabric_providers=("tcp", "verbs"))),
    ],
    "verbs-driver-missing": [
        case(),
        case(of=image(verbs_providers=()), nodes=1),
        case(of=absent(image(verbs_providers=(), ucx_transports=(), libfabric_providers=()), "nccl")),
        case(host(infiniband=("ibp65s0",)), image(verbs_providers=())),
        case(ETHERNET, NO_VERBS),
        case(of=NO_VERBS, nodes=1),
        case(of=absent(with_(NO_VERBS, ucx_transports=("ib", "tcp")), "nccl")),
        case(host(infiniband=("rdmap0s6",), fabrics=("efa",)), NO_VERBS),
    ],
    "locked-memory-limited": [
        case(),
        case(host(infiniband=(), locked_memory=65536)),
        case(host(locked_memory=2**32)),
        case(host(locked_memory=500 * 2**30)),
        case(absent(HOST, "locked_memory")),
    ],
    "shared-memory-small": [case(), case(absent(HOST, "shm"))],
    "single-copy-unavailable": [
        case(),
        case(ranks_per_node=2, container=("--sharens",)),
        case(NO_NAMESPACE, ranks_per_node=2),
        case(host(ptrace_scope=1, xpmem=True, runtime=NO_NAMESPACE.runtime), ranks_per_node=2),
        case(mode="mpirun-container", ranks_per_node=2),
    ],
}
UNDECIDED = {
    "mpi-lacks-fabric": [
        case(unread(HOST, "infiniband")),
        case(of=unread(IMAGE, "mpi")),
        case(of=mpi(components={})),
        case(of=image(mpi=with_(MPICH, device=None))),
    ],
    "ucx-lacks-fabric": [case(of=unread(image(mpi=MPICH), "ucx_transports"))],
    "libfabric-lacks-provider": [case(of=unread(CH4_OFI, "libfabric_providers"))],
    "verbs-driver-missing": [
        case(unread(HOST, "infiniband")),
        case(of=unread(NO_VERBS, "nccl")),
        case(of=unread(IMAGE, "verbs_providers")),
    ],
    "locked-memory-limited": [case(unread(HOST, "locked_memory"))],
    "single-copy-unavailable": [case(unread(HOST, "ptrace_scope"), ranks_per_node=2)],
}


@every_row(
    ("devices", "seen", "names"),
    [
        (("mlx5_0", "mlx5_1", "mlx5_bond_0"), (), ["infiniband or roce"]),
        (("hfi1_0",), ("omni-path",), ["omni-path"]),
        (("rdmap0s6",), ("efa",), ["efa"]),
        (("bnxt_re0", "mlx4_0"), (), ["roce", "infiniband or roce"]),
        (("rocep1s0f0",), (), ["roce"]),
        (("rocex525400c0fe123455",), (), ["roce"]),
        (("ibp65s0", "ibs1f0", "ibo2"), (), ["infiniband"]),
        (("hns_0",), (), ["roce"]),
        (("qedr0",), (), ["roce"]),
        (("cxgb4_0", "i40iw0", "erdma_0", "iwp9s0"), (), ["iwarp"] * 4),
        (("mana_0", "rxe0"), (), []),
        ((), ("slingshot",), ["slingshot"]),
        ((), (), []),
    ],
)
def test_networks_are_known_by_their_devices(
    devices: tuple[str, ...], seen: tuple[str, ...], names: list[str]
):
    assert [row.name for row in fabrics_of(devices, seen)] == names


@every_row(
    ("device", "link", "name", "shown"),
    [
        ("mlx5_0", "InfiniBand", "infiniband", "InfiniBand"),
        ("mlx5_0", "Ethernet", "roce", "RoCE"),
        ("mlx5_0", "Unspecified", "infiniband or roce", "InfiniBand or RoCE"),
        ("ibp65s0", "Ethernet", "roce", "RoCE"),
        ("hfi1_0", "InfiniBand", "omni-path", "Omni-Path"),
        ("cxgb4_0", "Ethernet", "iwarp", "iWARP"),
    ],
)
def test_the_link_of_a_port_says_which_network_it_is(device: str, link: str, name: str, shown: str):
    (row,) = fabrics_of((device,), (), {device: link, "mlx5_9": "Ethernet"})
    assert (row.name, row.shown) == (name, shown)


def test_no_libfabric_of_the_host_mends_one_inside_mpich():
    rules = tuple(r for r in RULES if r.id == "libfabric-lacks-provider")
    for of, inside in ((EMBEDDED, True), (CH4_OFI, False)):
        _, (found,) = judge(case(SLINGSHOT, of), rules)
        assert ("inside the image's MPICH" in found.title) is inside
        assert ("bind the host's libfabric" in found.fix) is not inside


@every_row(
    ("on", "of", "opens"),
    [
        (
            SLINGSHOT,
            mpi(components=UCX_ALONE),
            "use an image whose MPI was built with libfabric (Open MPI: --with-ofi",
        ),
        (SLINGSHOT, image(mpi=MPICH), "use an image whose MPI was built with libfabric"),
        (HOST, mpi(components=TCP_ALONE), "use an image whose MPI was built with UCX (Open MPI: --with-ucx"),
        (SLINGSHOT, IMAGE, "bind the host's libfabric"),
        (OMNI_PATH, mpi(components=TCP_ALONE), "install libpsm2 (Debian: libpsm2-2) in the image"),
        (OMNI_PATH, image(mpi=MPICH), "install libpsm2 (Debian: libpsm2-2) in the image"),
    ],
)
def test_a_library_is_no_fix_for_an_mpi_that_never_opens_it(on, of, opens):
    rules = tuple(r for r in RULES if r.id.endswith(("lacks-fabric", "lacks-provider")))
    _, (found,) = judge(case(on, of), rules)
    assert found.fix.startswith(opens)
    # No module of UCX supports Slingshot, so the title names the MPI and not a missing module.
    assert not found.title.startswith("The UCX in the image has no module")


def test_a_ucx_without_a_module_for_infiniband_is_the_title():
    rules = tuple(r for r in RULES if r.id == "ucx-lacks-fabric")
    _, (found,) = judge(case(HOST, image(mpi=MPICH, ucx_transports=("tcp",))), rules)
    assert found.title == "The UCX in the image has no module for InfiniBand"


def test_roce_is_called_so():
    rules = tuple(r for r in RULES if r.id == "mpi-lacks-fabric")
    for of, shown in ((ROCE, "RoCE"), (HOST, "InfiniBand"), (host(link_layers={}), "InfiniBand or RoCE")):
        _, (found,) = judge(case(of, mpi(components=TCP_ALONE)), rules)
        assert found.title == f"Open MPI 4.1.6 in the image cannot use {shown} and would use TCP"


def test_slow_messages_are_still_messages():
    rules = tuple(r for r in RULES if r.id in FIRES)
    for slow in (c for cases in FIRES.values() for c in cases):
        assert judge(slow, rules)[0].outcome == "ok"
