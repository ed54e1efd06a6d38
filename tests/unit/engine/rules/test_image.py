"""Test the rules about the image's MPI, and about wrong descriptions of the image."""

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
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict, predict_plan
from toolkit.engine.registry import RULES
from toolkit.model.prediction import Request

INTEL = msgspec.structs.replace(MPICH, implementation="intelmpi", version="2021.19.0", device=None)
NO_LIBFABRIC = absent(image(mpi=INTEL), "libfabric")
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, leaks=())
SPECTRUM = msgspec.structs.replace(LAUNCHER, implementation="spectrum", version="10.4.0")
INTEL_HYDRA = msgspec.structs.replace(HYDRA, implementation="intelmpi", version="2021.13")
OF_CRAY = host(
    mpis=(
        msgspec.structs.replace(
            HYDRA, implementation="cray", prefix="/opt/mpi", library="/opt/mpi/lib/libmpi.so.12",
            soname="libmpi.so.12", needs=(), places={}, folders=("/opt/mpi/lib",),
        ),
    )
)  # fmt: skip
ABI = absent(image(mpi=msgspec.structs.replace(MPICH, soname="libmpi.so.12")), "pmix")
IN_FOLDER = {"binds": ("/opt/mpi",), "env": {"LD_LIBRARY_PATH": "/opt/mpi/lib"}}
MOUNTED = msgspec.structs.replace(
    HYDRA, prefix="/opt/mpi", needs=("libfabric.so.1",), places={"libfabric.so.1": "/opt/mpi/lib"}
)
OMPI_6 = mpi(version="6.0.0rc2", plugins=False)
OLD_INTEL = with_(NO_LIBFABRIC, mpi=msgspec.structs.replace(INTEL, version="2021.13.1"))
MPICH_501 = image(mpi=msgspec.structs.replace(MPICH, version="5.0.1", device="ch4:ucx,ofi"))
MPICH_BY_OFI = image(mpi=msgspec.structs.replace(MPICH, version="5.0.1", device="ch4:ofi,ucx"))
MPICH_420 = image(mpi=msgspec.structs.replace(MPICH, version="4.2.0", interfaces=("pmix",)))
MPICH_402 = with_(
    image(mpi=msgspec.structs.replace(MPICH, version="4.0.2", interfaces=("pmix",))), pmix="4.2.2"
)
WITH_ORTE = host(mpis=(msgspec.structs.replace(LAUNCHER, version="4.1.4", leaks=()),))
NO_DEFAULT = msgspec.structs.replace(HOST.slurm, mpi_default=None)
BESIDE = {"binds": ("/opt/ofi/lib:/host/ofi",), "env": {"LD_LIBRARY_PATH": "/host/ofi"}}

OWN = "/opt/impi/opt/mpi/libfabric/lib/libfabric.so.1"
ONEAPI = msgspec.structs.replace(INTEL, prefix="/opt/impi", version="2021.13")
BROUGHT = image(mpi=ONEAPI, libfabric=OWN, libraries=("libc.so.6",))
STUB = "/opt/impi/lib/python3.11/site-packages/mpi4py/MPI.mpich.cpython-311-x86_64-linux-gnu.so"
PYTHON = with_(BROUGHT, libfabric="/opt/impi/lib/libfabric/libfabric.so.1", programs={STUB: ONEAPI.library})
SAVED, ALONE = image(mpi=MPICH), {"PMI_SIZE": "1", "PMI_RANK": "0"}
UNLED = with_(BROUGHT, libraries=("libfabric.so.1",), providers_unsearched="/opt/impi/lib/libfabric/prov")
LINKED = msgspec.structs.replace(ONEAPI, needs=("libfabric.so.1",))
COPIED = mpi(interfaces=(), components={"hwloc": ("external",), "pml": ("v",)}, plugins=False)
MOVED = mpi(built_for="/build/ompi/lib/openmpi", led_by={"OPAL_PREFIX": "/opt/hpcx/ompi"})

FIRES = {
    "image-lacks-mpi": [
        case(of=absent(IMAGE, "mpi")),
        case(of=absent(IMAGE, "mpi"), nodes=1),
        case(of=absent(absent(IMAGE, "mpi"), "mpirun"), mode="mpirun-container"),
        case(of=with_(absent(IMAGE, "mpi"), programs_need={"/opt/probe": "libmpi.so.12"}), mode="bind"),
    ],
    "mpi-moved": [case(of=MOVED), case(of=MOVED, mode="srun-none"), case(of=MOVED, mode="mpirun-host")],
    "mpi-lacks-plugins": [case(of=COPIED), case(of=COPIED, mode="srun-none"), case(of=COPIED, nodes=1)],
    "image-mpi-not-measured": [
        case(of=mpi(implementation="cray", interfaces=("pmix",))),
        case(host(mpis=(SPECTRUM,)), mpi(implementation="spectrum", version="10.3.1"), "mpirun-host"),
    ],
    "libfabric-missing": [
        case(of=NO_LIBFABRIC, mode="srun-pmi2"),
        case(host(mpis=(HYDRA,)), NO_LIBFABRIC, "mpirun-host"),
        case(absent(HOST, "libfabric"), NO_LIBFABRIC, "srun-pmi2"),
        case(of=OLD_INTEL, mode="srun-none"),
        case(of=OLD_INTEL, mode="srun-pmi2"),
        case(of=OLD_INTEL, mode="mpirun-container", nodes=1),
        case(host(mpis=(HYDRA,), slurm=NO_DEFAULT), OLD_INTEL, "mpirun-host"),
        case(of=BROUGHT, mode="srun-pmi2"),
        case(host(mpis=(INTEL_HYDRA,)), NO_LIBFABRIC, "mpirun-host"),
        case(of=with_(PYTHON, programs={"/opt/probe": ONEAPI.library}), mode="mpirun-container", nodes=1),
    ],
    "image-sets-rank": [
        case(of=with_(SAVED, environment=ALONE), mode="srun-pmi2"),
        case(of=with_(SAVED, environment=ALONE), mode="mpirun-host"),
        case(of=with_(SAVED, environment={"PMI_SIZE": "1"}), mode="srun-none"),
        case(of=with_(SAVED, environment={"PMI_RANK": "3", "PMI_SIZE": "4"}), mode="srun-pmi2"),
    ],
    "libfabric-lacks-providers": [
        case(of=UNLED, mode="srun-pmi2"),
        case(of=UNLED, mode="srun-none"),
        case(of=UNLED, mode="mpirun-host"),
        case(of=with_(UNLED, providers_unsearched="", libfabric_providers=()), mode="srun-pmi2"),
    ],
    "mpi-release-defect": [
        case(of=OMPI_6),
        case(of=MPICH_501, mode="srun-pmi2"),
        case(of=with_(MPICH_420, pmix="5.0.1")),
        case(of=with_(mpi(version="3.0.4"), pmix="2.1.4")),
        case(WITH_ORTE, MPICH_402, "mpirun-host", batch=False),
        case(of=MPICH_402, mode="srun-pmi2"),
    ],
    "stack-disagrees": [case(of=image(disagreements=("stack.json says pmix 5.0.7, found was 4.2.9",)))],
}
QUIET = {
    "image-lacks-mpi": [case(), case(host(mpis=()), absent(IMAGE, "mpi"), "bind")],
    "mpi-moved": [
        case(),
        case(of=absent(IMAGE, "mpi")),
        case(of=MOVED, env={"OPAL_PREFIX": "/opt/hpcx/ompi"}),
        case(host(environment={"OPAL_PREFIX": "/opt/mpi"}), MOVED),
    ],
    "mpi-lacks-plugins": [
        case(),
        case(of=absent(IMAGE, "mpi")),
        case(of=image(mpi=MPICH), mode="srun-pmi2"),
        case(of=mpi(interfaces=(), components={})),
        case(of=mpi(components={"pml": ("v",)})),
        case(of=mpi(interfaces=(), components={"btl": ("self", "tcp"), "pml": ("ob1",)})),
    ],
    "image-mpi-not-measured": [
        case(),
        case(of=image(mpi=MPICH)),
        case(OF_CRAY, ABI, "bind", **IN_FOLDER),
        case(host(mpis=(SPECTRUM,)), mpi(implementation="spectrum", version="10.4.0"), "mpirun-host"),
    ],
    "libfabric-missing": [
        case(mode="srun-pmi2"),
        case(of=NO_LIBFABRIC, mode="srun-pmi2", nodes=1),
        case(of=NO_LIBFABRIC, mode="mpirun-host"),
        case(host(mpis=()), NO_LIBFABRIC, "mpirun-host"),
        case(host(libfabric="/opt/ofi/lib/libfabric.so.1"), NO_LIBFABRIC, "srun-pmi2", **BESIDE),
        case(of=BROUGHT, mode="mpirun-container", nodes=1),
        case(of=with_(NO_LIBFABRIC, environment={"I_MPI_FABRICS": "shm"}), mode="srun-pmi2"),
        case(of=PYTHON, mode="srun-pmi2"),
        case(
            host(mpis=(MOUNTED,)),
            NO_LIBFABRIC,
            "bind",
            binds=("/opt/mpi",),
            env={"LD_LIBRARY_PATH": "/opt/mpi/lib"},
        ),
        case(of=with_(BROUGHT, libraries=("libfabric.so.1",)), mode="srun-pmi2"),
        case(of=with_(BROUGHT, mpi=LINKED), mode="srun-pmi2"),
    ],
    "image-sets-rank": [
        case(of=SAVED, mode="srun-pmi2"),
        case(of=with_(SAVED, environment={"PMI_DEBUG": "1"}), mode="srun-pmi2"),
        case(of=with_(SAVED, environment=ALONE), mode="srun-pmi2", env={"PMI_RANK": "0"}),
        case(of=image(environment=ALONE)),
        case(of=with_(absent(IMAGE, "mpi"), environment=ALONE), mode="srun-pmi2"),
    ],
    "libfabric-lacks-providers": [
        case(),
        case(of=with_(UNLED, providers_unsearched=""), mode="srun-pmi2"),
        case(of=with_(UNLED, environment={"FI_PROVIDER_PATH": "/opt/prov"}), mode="srun-pmi2"),
        case(of=UNLED, mode="srun-pmi2", env={"FI_PROVIDER_PATH": "/opt/prov"}),
        case(of=with_(UNLED, environment={"I_MPI_FABRICS": "shm"}), mode="srun-pmi2"),
        case(of=with_(NO_LIBFABRIC, providers_unsearched="/opt/prov"), mode="srun-pmi2"),
        case(of=image(providers_unsearched="/opt/prov")),
        case(host(libfabric="/opt/ofi/lib/libfabric.so.1"), UNLED, "srun-pmi2", **BESIDE),
    ],
    "mpi-release-defect": [
        case(),
        case(of=OMPI_6, env={"OMPI_MCA_btl_tcp_if_include": "eth0"}),
        case(of=MPICH_501, mode="srun-pmi2", env={"MPIR_CVAR_CH4_NETMOD": "ofi"}),
        case(of=with_(MPICH_501, environment={"MPIR_CVAR_CH4_NETMOD": "ofi"}), mode="srun-pmi2"),
        case(of=MPICH_BY_OFI, mode="srun-pmi2"),
        case(of=MPICH_501, mode="srun-none"),
        case(of=with_(mpi(version="3.1.3"), pmix="2.1.4")),
        case(of=with_(mpi(version="3.0.4"), pmix="2.1.4"), mode="srun-pmi2"),
        case(of=absent(IMAGE, "mpi")),
        case(WITH_ORTE, MPICH_402, "mpirun-host", env={"MPIR_CVAR_CH4_NETMOD": "ofi"}),
        case(of=MPICH_402, mode="mpirun-host", batch=False, env={"MPIR_CVAR_CH4_NETMOD": "ofi"}),
        case(of=MPICH_402, mode="srun-pmi2", nodes=1),
        case(of=unread(MPICH_402, "mpi.device"), mode="srun-pmi2"),
    ],
    "stack-disagrees": [case(), case(of=absent(IMAGE, "stack"))],
}
UNDECIDED = {
    "image-lacks-mpi": [case(of=unread(IMAGE, "mpi"))],
    "mpi-moved": [case(of=unread(IMAGE, "mpi"))],
    "mpi-lacks-plugins": [case(of=unread(IMAGE, "mpi"))],
    "mpi-release-defect": [
        case(of=unread(MPICH_501, "mpi.device"), mode="srun-pmi2"),
        case(
            of=with_(
                MPICH_501, mpi=with_(MPICH_501.mpi, device=None), absent={"mpi.device": "no text of it"}
            ),
            mode="srun-pmi2",
        ),
    ],
    "libfabric-missing": [
        case(of=unread(image(mpi=INTEL), "libfabric"), mode="srun-pmi2"),
        case(of=unread(BROUGHT, "libraries"), mode="srun-pmi2"),
    ],
}
OUTCOMES = {
    "image-lacks-mpi": "loader-failure",
    "mpi-moved": "init-failure",
    "mpi-lacks-plugins": "init-failure",
    "image-mpi-not-measured": "unknown",
    "libfabric-missing": "init-failure",
    "image-sets-rank": "singletons",
    "libfabric-lacks-providers": "init-failure",
    "mpi-release-defect": "comm-failure",
}


@every_row("mode", ["srun-pmix", "mpirun-host", "mpirun-container"])
def test_an_open_mpi_that_was_moved_is_told_by_the_plan_where_it_lies(mode):
    request = Request(nodes=1, ranks_per_node=2)
    made = propose(HOST, MOVED, request, mode)
    # The image's mpirun was moved, too.
    inside = mode == "mpirun-container"
    assert ("OPAL_PREFIX" in made.env) != inside
    assert ("OPAL_PREFIX=/opt/hpcx/ompi" in made.container) == inside
    assert predict_plan(HOST, MOVED, request, made).outcome == "ok"
    without = msgspec.structs.replace(made, env={}, container=())
    assert predict_plan(HOST, MOVED, request, without).outcome == "init-failure"


def test_a_moved_mpirun_is_not_led_to_a_folder_that_no_option_can_name():
    request = Request(nodes=1, ranks_per_node=2)
    of = mpi(built_for="/build/ompi/lib/openmpi", led_by={"OPAL_PREFIX": "/opt/a,b"})
    made = propose(HOST, of, request, "mpirun-container")
    assert "--env" not in made.container
    assert predict_plan(HOST, of, request, made).outcome == "init-failure"
    assert predict_plan(HOST, of, request, propose(HOST, of, request, "srun-pmix")).outcome == "ok"


@every_row(("named", "outcome"), [("/opt/hpcx/ompi/", "ok"), ("/opt/other", "init-failure")])
def test_the_folder_that_a_person_names_counts(named, outcome):
    request = Request(nodes=1, ranks_per_node=2, env={"OPAL_PREFIX": named})
    of = with_(MOVED, mpi=msgspec.structs.replace(MOVED.mpi, plugins=True))
    made = propose(HOST, of, request, "srun-pmix")
    assert made.env["OPAL_PREFIX"] == named
    assert predict_plan(HOST, of, request, made).outcome == outcome


def test_an_old_intel_mpi_without_libfabric_crashes_before_it_can_be_alone():
    outcomes = ("crash", "init-failure", "init-failure")
    for of, outcome in zip(FIRES["libfabric-missing"][3:6], outcomes, strict=True):
        assert predict_plan(of.host_facts, of.image_facts, of.request, of.plan).outcome == outcome


def intel(version, **changes):
    return msgspec.structs.replace(image(mpi=msgspec.structs.replace(INTEL, version=version)), **changes)


def outcome_of(of, mode, **launch):
    return judge(case(of=of, mode=mode, **launch), RULES)[0].outcome


def test_how_intel_mpi_ends_without_libfabric_is_a_matter_of_its_release():
    found = {
        version: outcome_of(absent(intel(version), "libfabric"), "srun-pmi2")
        for version in ("2021.3.1", "2021.5", "2021.6", "2021.17", "2021.18")
    }
    assert found == {
        "2021.3.1": "crash",
        "2021.5": "crash",
        "2021.6": "init-failure",
        "2021.17": "init-failure",
        "2021.18": "init-failure",
    }


UNTHREADED = msgspec.structs.replace(HOST, cpu_threads=1)
NOT_ASKED = unread(HOST, "cpu_vendor", "cpu_threads")
ON_INTEL = msgspec.structs.replace(UNTHREADED, cpu_vendor="GenuineIntel")
NO_X86 = absent(HOST, "cpu_vendor", "cpu_threads")


def test_mpirun_of_intel_mpi_asks_for_srun_on_one_node_too_before_2021_2():
    ends = {
        "2018.3": "hang",
        "2019": "init-failure",
        "2019.4": "init-failure",
        "2019.9": "unknown",
        "2021.1": "init-failure",
        "2021.2": "ok",
    }
    for version, outcome in ends.items():
        assert outcome_of(intel(version), "mpirun-container", nodes=1) == outcome
    for version in ("2018.3", "2019.4", "2021.1"):
        assert outcome_of(intel(version), "mpirun-container", nodes=1, allocation=False) == "ok"
        forked = predict(HOST, intel(version), Request(nodes=1)).of("mpirun-container")
        assert (forked.plan.launcher[1:], forked.outcome) == (("-launcher", "fork"), "ok")


def test_mpirun_of_intel_mpi_2019_0_loses_its_words_unless_its_folder_is_named():
    named = intel("2019", environment={"I_MPI_ROOT": "/opt/impi"})
    assert outcome_of(named, "mpirun-container", nodes=1) == "ok"
    assert outcome_of(named, "mpirun-container") == "hang"
    # Without mpirun in the image, the launch starts no rank, so no loader needs libfabric.
    mpi = msgspec.structs.replace(INTEL, version="2019", needs=("libfabric.so.1",), lacks=("libfabric.so.1",))
    lacking = absent(image(mpi=mpi, programs={"/opt/probe": mpi.library}, libraries=()), "libfabric")
    assert outcome_of(lacking, "mpirun-container", nodes=1) == "init-failure"
    assert outcome_of(lacking, "srun-pmi2") == "loader-failure"


def test_mpirun_of_intel_mpi_2019_4_fails_on_processors_of_amd_without_threads():
    ends = {"crash": UNTHREADED, "unknown": NOT_ASKED, "init-failure": ON_INTEL}
    for outcome, on in ends.items():
        of = case(on, intel("2019.4"), "mpirun-container", nodes=1)
        assert judge(of, RULES)[0].outcome == outcome
    assert (
        judge(case(NO_X86, intel("2019.4"), "mpirun-container", nodes=1), RULES)[0].outcome == "init-failure"
    )


def test_what_intel_mpi_before_2021_does_without_a_launcher():
    """Without a launcher, Intel MPI from 2019 on starts mpiexec, and Intel MPI 2018 uses Slurm's
    variables.
    """
    assert outcome_of(intel("2018.3"), "srun-none") == "hang"
    assert outcome_of(intel("2018.3"), "srun-none", container=("--cleanenv",)) == "singletons"
    assert outcome_of(intel("2019"), "srun-none") == "singletons"
    assert outcome_of(absent(intel("2019"), "mpirun"), "srun-none") == "hang"
    assert outcome_of(intel("2019.4"), "srun-none") == "hang"
    for outcome, on in {"hang": UNTHREADED, "singletons": HOST, "unknown": NOT_ASKED}.items():
        of = case(on, intel("2019.4"), "srun-none", container=("--cleanenv",))
        assert judge(of, RULES)[0].outcome == outcome
    for version in ("2018.3", "2019", "2019.4"):
        assert outcome_of(intel(version), "srun-pmi2") == "ok"


def test_threads_alone_do_not_tell_who_made_a_processor():
    """The rule must not guess the processor's vendor if the vendor is unknown."""
    on = unread(HOST, "cpu_vendor")
    cleaned = case(on, intel("2019.4"), "srun-none", container=("--cleanenv",))
    inside = case(on, intel("2019.4"), "mpirun-container", nodes=1)
    for of in (cleaned, inside):
        said, _ = judge(of, RULES)
        assert (said.outcome, said.missing) == ("unknown", ("host.cpu_vendor",))


def test_intel_mpi_2018_needs_no_libfabric():
    assert outcome_of(absent(intel("2018.3"), "libfabric"), "srun-pmi2") == "ok"
    assert outcome_of(absent(intel("2019"), "libfabric"), "srun-pmi2") == "crash"


def test_an_mpich_4_0_under_orte_waits_where_mpirun_is_on_none_of_its_nodes():
    ends = {
        (batch, nodes): judge(case(WITH_ORTE, MPICH_402, "mpirun-host", nodes=nodes, batch=batch), RULES)[0]
        for batch in (True, False)
        for nodes in (1, 2)
    }
    ends = {shape: said.outcome for shape, said in ends.items()}
    assert ends == {(True, 1): "ok", (True, 2): "ok", (False, 1): "ok", (False, 2): "hang"}


def test_shared_memory_alone_needs_no_libfabric():
    bare = absent(intel("2021.17"), "libfabric")
    shm = msgspec.structs.replace(bare, environment={"I_MPI_FABRICS": "shm"})
    assert outcome_of(shm, "srun-pmi2", nodes=1, ranks_per_node=2) == "ok"
    assert outcome_of(shm, "srun-pmi2") == "crash"
    assert outcome_of(bare, "srun-pmi2") == "init-failure"


def test_the_folder_of_intel_mpi_may_be_named():
    of = intel("2021.13", environment={"I_MPI_ROOT": "/opt/intel/oneapi/mpi/latest"})
    assert outcome_of(of, "srun-pmi2") == "ok"


def test_intels_own_hydra_waits_where_a_rank_without_libfabric_gives_up():
    under = [case(host(mpis=(mpi,)), NO_LIBFABRIC, "mpirun-host") for mpi in (HYDRA, INTEL_HYDRA)]
    assert [judge(of, RULES)[0].outcome for of in under] == ["init-failure", "hang"]


def test_programs_do_not_find_the_libfabric_that_lies_beside_intel_mpi():

    verdict = predict(HOST, BROUGHT, Request(nodes=1, ranks_per_node=2))
    found = {mode: verdict.of(mode).outcome for mode in ("srun-none", "srun-pmi2", "mpirun-container")}
    assert found == {"srun-none": "crash", "srun-pmi2": "init-failure", "mpirun-container": "ok"}


def test_one_rank_alone_is_warned_and_runs():
    of = FIRES["image-lacks-mpi"][1]
    assert predict_plan(of.host_facts, of.image_facts, of.request, of.plan).outcome == "ok"


def test_whether_mpich_5_fills_a_line_of_pmi_is_chance_unless_it_puts_the_address_of_libfabric():
    plain = msgspec.structs.replace(HOST.slurm, mpi_default="none")
    hydra = host(mpis=(HYDRA,), slurm=plain, runtime=msgspec.structs.replace(HOST.runtime, setuid=True))
    given = {"env": {"UCX_TLS": "tcp,self"}}
    later = with_(MPICH_501, mpi=msgspec.structs.replace(MPICH_501.mpi, version="5.0.9"))
    said = {
        "srun": case(hydra, MPICH_501, "srun-pmi2"),
        "shorter address": case(hydra, MPICH_501, "srun-pmi2", **given),
        "next release": case(hydra, later, "srun-pmi2"),
        "mpirun": case(hydra, MPICH_501, "mpirun-host"),
        "ucx asked for": case(hydra, MPICH_BY_OFI, "srun-pmi2", env={"MPIR_CVAR_CH4_NETMOD": "ucx"}),
        "one node": case(hydra, MPICH_501, "srun-pmi2", nodes=1, ranks_per_node=2),
        "libfabric": case(hydra, MPICH_501, "srun-pmi2", env={"MPIR_CVAR_CH4_NETMOD": "ofi"}),
    }
    found = {
        name: predict_plan(of.host_facts, of.image_facts, of.request, of.plan) for name, of in said.items()
    }
    sure = {"one node": "ok", "libfabric": "ok"}
    assert {name: one.outcome for name, one in found.items()} == {n: sure.get(n, "unknown") for n in said}
    assert set(found["srun"].by_chance) == {"ok", "init-failure", "hang"}


def test_a_failure_that_is_certain_keeps_the_outcomes_by_chance_of_what_comes_before_it():
    apart = host(mpis=(HYDRA,), runtime=msgspec.structs.replace(HOST.runtime, setuid=False))
    of = case(apart, MPICH_501, "srun-pmi2", ranks_per_node=2)
    found = predict_plan(of.host_facts, of.image_facts, of.request, of.plan)
    assert (found.outcome, found.by_chance) == ("init-failure", ("hang",))


def test_mpich_4_2_0_waits_for_a_key_where_it_speaks_pmix_to_slurm():
    found = {
        (version, faces): judge(case(of=with_(MPICH_420, pmix="5.0.1", mpi=made)), RULES)[0].outcome
        for version in ("4.2.0", "4.2.1", "4.2.2")
        for faces in (("pmix",), ("pmi1", "pmix"))
        for made in (msgspec.structs.replace(MPICH_420.mpi, version=version, interfaces=faces),)
    }
    assert found == {
        ("4.2.0", ("pmix",)): "hang",
        ("4.2.1", ("pmix",)): "hang",
        ("4.2.2", ("pmix",)): "ok",
        ("4.2.0", ("pmi1", "pmix")): "singletons",
        ("4.2.1", ("pmi1", "pmix")): "singletons",
        ("4.2.2", ("pmi1", "pmix")): "singletons",
    }
    beside = case(of=with_(MPICH_420, pmix="5.0.1"), nodes=1, ranks_per_node=2, container=("--sharens",))
    assert judge(beside, RULES)[0].outcome == "ok"


def test_the_plan_names_the_folder_of_the_providers_of_intels_libfabric():
    named = {"FI_PROVIDER_PATH": "/opt/impi/lib/libfabric/prov"}
    led = predict(HOST, UNLED, Request()).of("srun-pmi2")
    assert led.plan is not None
    assert named.items() <= led.plan.env.items()
    assert led.outcome == "ok"
    for other in (
        with_(UNLED, environment={"FI_PROVIDER_PATH": "/a"}),
        with_(UNLED, providers_unsearched=""),
        image(providers_unsearched="/a"),
    ):
        plan = predict(HOST, other, Request()).of("srun-pmi2").plan
        assert plan is None or "FI_PROVIDER_PATH" not in plan.env
