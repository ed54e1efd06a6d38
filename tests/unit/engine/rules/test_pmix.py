"""Test the rules about compatibility of the PMIx server in Slurm and the PMIx client in the image."""

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPICH,
    absent,
    case,
    host,
    image,
    mpi,
    unread,
    with_,
)
from tests.unit.tables import every_row
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

BUNDLED = with_(
    mpi(version="4.1.4", plugins=True, how={"pmix": "component pmix3x"}),
    pmix="3.2.3",
    pmix_components={"gds": ("ds12", "ds21", "hash"), "psec": ("native", "none")},
)
WITH_MUNGE = with_(BUNDLED, pmix_components={"gds": ("hash",), "psec": ("munge", "native")})
OPEN_MPI_2 = with_(mpi(version="2.1.1", components={"pmix": ("pmix112",)}), pmix="1.2.1")
PLAIN = {"PMIX_SECURITY_MODE": "native", "PMIX_GDS_MODULE": "hash"}
OLDER = host(pmix="4.2.2")

EXT = {"pmix_ext3x": ("libmunge.so.2", "libpmix.so.2")}
ORTE = msgspec.structs.replace(
    LAUNCHER, version="4.1.2", pmix="4.1.2", leaks=(), needs=("libopen-pal.so.40",)
)
WITH = msgspec.structs.replace(ORTE, components_need=EXT)
WITHOUT = msgspec.structs.replace(ORTE, components_need={"pmix_ext3x": ("libpmix.so.2",)})

FIRES = {
    "pmix-components-named": [
        case(of=BUNDLED),
        case(OLDER, BUNDLED),
        case(OLDER, with_(BUNDLED, pmix_components={})),
        case(of=BUNDLED, mode="mpirun-host"),
        case(host(mpis=(WITH,)), BUNDLED, "mpirun-host"),
        case(host(mpis=(ORTE,)), BUNDLED, "mpirun-host"),
        case(host(mpis=(msgspec.structs.replace(ORTE, needs=None),)), BUNDLED, "mpirun-host"),
        case(of=WITH_MUNGE),
        case(of=with_(BUNDLED, pmix="3.2.0rc1")),
        case(of=with_(BUNDLED, mpi=msgspec.structs.replace(BUNDLED.mpi, plugins=False))),
    ],
    "pmix-pair-fails": [
        case(of=with_(IMAGE, pmix="1.2.5")),
        case(host(pmix="1.1.5"), with_(IMAGE, pmix="1.1.5")),
        case(of=OPEN_MPI_2),
        case(of=with_(mpi(implementation="cray"), pmix="1.2.5")),
    ],
    "pmix-client-needs-care": [case(of=with_(IMAGE, pmix="5.0.9")), case(of=with_(IMAGE, pmix="5.0.8a1"))],
}
QUIET = {
    "pmix-components-named": [
        case(),
        case(of=BUNDLED, env=PLAIN),
        *(case(of=with_(BUNDLED, pmix=fine)) for fine in ("2.2.5", "3.1.5", "3.2.4rc1", "3.2.5a1")),
        case(with_(OLDER, munge=False), BUNDLED),
        case(OLDER, WITH_MUNGE),
        case(host(mpis=(WITHOUT,)), BUNDLED, "mpirun-host"),
    ],
    "pmix-pair-fails": [
        case(),
        case(of=image(mpi=MPICH)),
        case(absent(HOST, "pmix")),
        case(of=absent(IMAGE, "pmix")),
    ],
    "pmix-client-needs-care": [
        case(),
        case(of=with_(image(mpi=MPICH), pmix="5.0.9")),
        case(of=with_(IMAGE, pmix="5.0.10a1")),
        case(of=absent(IMAGE, "pmix")),
    ],
}
UNDECIDED = {
    "pmix-components-named": [
        case(unread(OLDER, "munge"), BUNDLED),
    ],
    "pmix-pair-fails": [case(unread(HOST, "pmix"))],
    "pmix-client-needs-care": [case(of=unread(IMAGE, "pmix"))],
}
OUTCOMES = {"pmix-pair-fails": "init-failure", "pmix-components-named": "init-failure"}


def test_a_client_that_ends_under_hydra_never_comes_to_be_alone():
    hydra = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.1.3", pmix=None, leaks=())
    intel = msgspec.structs.replace(hydra, implementation="intelmpi", version="2021.13")
    found = {
        (mpi.implementation, nodes): judge(
            case(host(mpis=(mpi,)), BUNDLED, "mpirun-host", nodes=nodes, ranks_per_node=3 - nodes), RULES
        )[0].outcome
        for mpi in (hydra, intel)
        for nodes in (1, 2)
    }
    assert found == {
        ("mpich", 1): "init-failure",
        ("mpich", 2): "init-failure",
        ("intelmpi", 1): "init-failure",
        ("intelmpi", 2): "hang",
    }


@every_row(
    ("server", "client", "outcome"),
    [
        ("3.1.5", "7.0.0rc1", "init-failure"),
        ("3.2.0", "7.0.0rc1", "ok"),
        ("3.1.5", "6.1.0", "ok"),
        ("3.1.5", "3.1.5", "ok"),
        ("4.0.0", "3.1.5", "comm-failure"),
        ("4.0.0", "4.2.2", "ok"),
        ("4.2.2", "3.1.5", "ok"),
    ],
)
def test_which_client_a_server_of_slurm_serves(server, client, outcome):
    image = with_(mpi(version="5.0.7", plugins=False), pmix=client, pmix_components={"gds": ("hash",)})
    assert judge(case(host(pmix=server), image, env=PLAIN), RULES)[0].outcome == outcome


@every_row(
    ("mpirun", "server", "client", "batch", "outcome"),
    [
        ("4.0.3", "3.1.5", "7.0.0rc1", True, "init-failure"),
        ("4.0.3", "3.1.5", "5.0.9", True, "ok"),
        ("4.0.3", "3.1.5", "5.0.9", False, "ok"),
        # Debian's PMIx 4.0.0 reports itself as a release candidate.
        ("4.1.0", "4.0.0rc3", "5.0.9", True, "ok"),
        ("4.1.0", "4.0.0rc3", "5.0.9", False, "hang"),
        ("4.1.2", "4.1.2", "3.1.5", True, "ok"),
    ],
)
def test_which_client_an_orte_serves(mpirun, server, client, batch, outcome):
    launcher = msgspec.structs.replace(LAUNCHER, version=mpirun, pmix=server, leaks=())
    image = with_(mpi(version="5.0.7", plugins=False), pmix=client, pmix_components={"gds": ("hash",)})
    asked = case(host(mpis=(launcher,)), image, "mpirun-host", batch=batch, env=PLAIN)
    assert judge(asked, RULES)[0].outcome == outcome
