"""Test the rules about how ranks connect: the launcher's interfaces, and the interfaces of the image's
MPI.
"""

import msgspec

from tests.unit.engine.whole import (
    HOST,
    IMAGE,
    LAUNCHER,
    MPICH,
    SLURM,
    absent,
    case,
    host,
    image,
    mpi,
    unread,
    with_,
)
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES
from toolkit.engine.wireup import Offer, offer
from toolkit.model.facts import ImageProgram

MPICH_IMAGE = absent(image(mpi=MPICH), "pmix")
REFUSES = ("PMIX_RANK", "unsupported PMI version")
MPICH_5 = absent(image(mpi=msgspec.structs.replace(MPICH, version="5.0.2", markers=REFUSES)), "pmix")
MPICH_5_PMIX = with_(
    image(mpi=msgspec.structs.replace(MPICH_5.mpi, interfaces=("pmi1", "pmi2", "pmix"))), pmix="5.0.7"
)
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, leaks=())
WITH_HYDRA = host(mpis=(HYDRA,))
WITH_INTEL = host(mpis=(msgspec.structs.replace(HYDRA, implementation="intelmpi", version="2021.13"),))
NO_DEFAULT = msgspec.structs.replace(SLURM, mpi_default=None)
PMI2_ALONE = msgspec.structs.replace(SLURM, mpi_types=("none", "pmi2"))
NO_LIST = msgspec.structs.replace(SLURM, mpi_types=None)
NO_RELEASE = msgspec.structs.replace(SLURM, version=None)
NEWER = msgspec.structs.replace(SLURM, version="26.05.5")
PLAIN = msgspec.structs.replace(SLURM, mpi_default="none")
BY_PMI2 = msgspec.structs.replace(SLURM, mpi_default="pmi2")
CRAY = mpi(implementation="cray", interfaces=())
OPT = msgspec.structs.replace(
    LAUNCHER,
    prefix="/opt/mpi",
    library="/opt/mpi/lib/libmpi.so.40",
    folders=("/opt/mpi/lib",),
    soname="libmpi.so.20",
    glibc_needed="2.34",
)
PMI2 = {"mode": "bind", "binds": ("/opt/mpi",), "launcher": ("srun", "--mpi=pmi2")}
IN_STEP = {"env": {"SLURM_STEP_ID": "0"}, "unset": LAUNCHER.leaks}

ORTE = msgspec.structs.replace(LAUNCHER, version="4.1.4", leaks=())
OPEN_MPI_2 = absent(mpi(version="2.1.1"), "ssh")
MUTE = mpi(version="2.1.1", interfaces=())
INTEL_2019 = image(mpi=msgspec.structs.replace(MPICH, implementation="intelmpi", version="2019.4"))
PMI_BUILT = absent(mpi(version="4.1.4", interfaces=("pmi1", "pmi2")), "pmix")
OPEN_MPI_1 = absent(mpi(version="1.10.2", interfaces=()), "pmix")

PALS_EXEC = msgspec.structs.replace(LAUNCHER, implementation="cray", version="9.0.1")
PALS = absent(host(mpis=(PALS_EXEC,)), "slurm")
"""On a Cray EX with PBS, mpiexec is the launcher of PALS."""

CLEARED = image(program=ImageProgram(command=("run",), path="/opt/a", mpi=True, clears="/opt/run"))
FILTERED = image(program=ImageProgram(command=("run",), path="/opt/a", mpi=True, filters="/opt/run"))
FIRES = {
    "environment-cleaned": [
        case(container=("--containall",)),
        case(host(environment={"APPTAINER_CLEANENV": ""})),
        case(mode="gloo", container=("--cleanenv",)),
        case(of=OPEN_MPI_2, container=("--cleanenv",)),
        case(of=CRAY, container=("--cleanenv",)),
        case(of=INTEL_2019, container=("--cleanenv",)),
        case(of=CLEARED),
        case(of=CLEARED, mode="mpirun-container"),
        case(of=FILTERED),
        case(of=FILTERED, mode="mpirun-container"),
    ],
    "image-lacks-pmix": [
        case(of=MPICH_IMAGE),
        case(of=MPICH_5),
        case(of=CRAY),
        case(of=MUTE, env={"PMIX_SECURITY_MODE": "native"}),
        case(of=MUTE, env={"PMIX_SECURITY_MODE": "munge,native"}),
    ],
    "image-lacks-pmi2": [
        case(mode="srun-pmi2"),
        case(of=mpi(version="5.0.7"), mode="srun-pmi2"),
        case(host(slurm=PMI2_ALONE), mode="srun-pmi2"),
    ],
    "nothing-offered": [
        case(mode="srun-none"),
        case(of=MPICH_IMAGE, mode="srun-none"),
        case(of=MPICH_5_PMIX, mode="srun-none"),
        case(host(slurm=NO_LIST), mode="srun-none"),
        case(of=INTEL_2019, mode="srun-none"),
    ],
    "bind-interface-differs": [
        case(host(mpis=(OPT,)), **PMI2),
        case(host(mpis=(OPT,)), MPICH_IMAGE, "bind", binds=("/opt/mpi",)),
        case(host(mpis=(OPT,)), MPICH_IMAGE, "bind", launcher=("srun", "--mpi=none")),
        case(host(mpis=(OPT,)), MPICH_IMAGE, "bind", launcher=("srun", "--mpi=cray_shasta")),
        case(host(mpis=(OPT,), slurm=PLAIN), MPICH_IMAGE, "bind", launcher=("srun",)),
    ],
    "host-launcher-other-family": [
        case(of=MPICH_IMAGE, mode="mpirun-host"),
        case(host(mpis=(HYDRA,), slurm=PLAIN), IMAGE, "mpirun-host"),
        case(WITH_HYDRA, mode="mpirun-host"),
        case(WITH_HYDRA, mode="mpirun-host", ranks_per_node=2),
        case(WITH_HYDRA, with_(IMAGE, pmix="2.1.0"), "mpirun-host", ranks_per_node=2),
        case(WITH_HYDRA, mode="mpirun-host", nodes=1, ranks_per_node=2),
        case(host(mpis=(ORTE,)), OPEN_MPI_1, "mpirun-host"),
        case(WITH_HYDRA, PMI_BUILT, "mpirun-host"),
        case(WITH_HYDRA, PMI_BUILT, "mpirun-host", ranks_per_node=2),
        # Crux (ALCF): cray-pals 1.7.1, an image with its own MPICH
        case(PALS, MPICH_IMAGE, "mpirun-host"),
    ],
    "pmix-refused": [
        case(WITH_HYDRA, MPICH_5, "mpirun-host"),
        case(WITH_HYDRA, MPICH_5_PMIX, "mpirun-host"),
        case(WITH_INTEL, MPICH_5, "mpirun-host"),
        case(WITH_INTEL, MPICH_5, "mpirun-host", nodes=1, ranks_per_node=2),
    ],
    "rank-outside-step": [
        case(mode="mpirun-host", unset=LAUNCHER.leaks),
        case(mode="mpirun-host", unset=LAUNCHER.leaks, nodes=1, ranks_per_node=2),
        case(unset=("SLURM_STEP_ID",)),
    ],
    "host-launcher-not-known": [
        case(host(mpis=(msgspec.structs.replace(LAUNCHER, implementation="spectrum"),)), mode="mpirun-host")
    ],
}
QUIET = {
    "environment-cleaned": [
        case(),
        case(container=("--no-home",)),
        case(container=("--cleanenv",), mode="mpirun-container"),
        case(of=image(program=ImageProgram(command=("run",), path="/opt/a", mpi=True))),
        case(host(environment={"APPTAINER_CLEANENV": ""}), unset=("APPTAINER_CLEANENV",)),
    ],
    "image-lacks-pmix": [case()],
    "image-lacks-pmi2": [case(of=MPICH_IMAGE, mode="srun-pmi2")],
    "nothing-offered": [case(of=absent(IMAGE, "mpi"), mode="srun-none")],
    "bind-interface-differs": [
        case(host(mpis=(OPT,)), mode="bind", binds=("/opt/mpi",)),
        case(host(mpis=(OPT,)), MPICH_IMAGE, **PMI2),
        case(of=absent(IMAGE, "mpi"), mode="bind"),
        case(host(mpis=(OPT,), slurm=BY_PMI2), MPICH_IMAGE, "bind", launcher=("srun",)),
    ],
    "host-launcher-other-family": [
        case(mode="mpirun-host", **IN_STEP),
        case(WITH_HYDRA, MPICH_IMAGE, "mpirun-host"),
        case(host(mpis=()), mode="mpirun-host"),
        case(WITH_HYDRA, MPICH_IMAGE, "mpirun-host", allocation=False),
    ],
    "pmix-refused": [
        case(of=MPICH_5, mode="mpirun-host"),
        case(WITH_HYDRA, MPICH_IMAGE, "mpirun-host"),
        case(host(mpis=(HYDRA,), slurm=PLAIN), MPICH_5, "mpirun-host"),
        case(host(mpis=(HYDRA,), environment={"SLURM_MPI_TYPE": "none"}), MPICH_5, "mpirun-host"),
    ],
    "rank-outside-step": [
        case(mode="mpirun-host", **IN_STEP),
        case(of=mpi(version="5.0.7"), mode="mpirun-host"),
        case(of=MPICH_IMAGE),
        case(host(slurm=NEWER), mode="mpirun-host", unset=LAUNCHER.leaks),
        case(),
    ],
    "host-launcher-not-known": [
        case(mode="mpirun-host"),
        case(PALS, MPICH_IMAGE, "mpirun-host"),
        case(
            host(mpis=(msgspec.structs.replace(LAUNCHER, implementation="spectrum", version="10.4.0"),)),
            mpi(implementation="spectrum", version="10.4.0"),
            "mpirun-host",
        ),
        case(WITH_HYDRA, mode="mpirun-host"),
        case(
            host(mpis=(msgspec.structs.replace(HYDRA, implementation="unknown", lacks=("libx.so.1",)),)),
            mode="mpirun-host",
        ),
    ],
}
UNDECIDED = {
    "environment-cleaned": [case(of=unread(OPEN_MPI_2, "ssh"), container=("--cleanenv",))],
    "image-lacks-pmix": [case(of=unread(IMAGE, "mpi"))],
    "bind-interface-differs": [
        case(host(mpis=(OPT,), slurm=NO_DEFAULT), MPICH_IMAGE, "bind", launcher=("srun",)),
    ],
    "host-launcher-other-family": [case(host(mpis=(HYDRA,), slurm=NO_DEFAULT), mode="mpirun-host")],
    "pmix-refused": [case(host(mpis=(HYDRA,), slurm=NO_DEFAULT), MPICH_5, "mpirun-host")],
    "rank-outside-step": [case(host(slurm=NO_RELEASE), mode="mpirun-host", unset=LAUNCHER.leaks)],
    "host-launcher-not-known": [case(unread(HOST, "mpis"), mode="mpirun-host")],
}
OUTCOMES = {
    "environment-cleaned": "singletons",
    "image-lacks-pmix": "singletons",
    "image-lacks-pmi2": "init-failure",
    "nothing-offered": "init-failure",
    "bind-interface-differs": "init-failure",
    "host-launcher-other-family": "singletons",
    "pmix-refused": "init-failure",
    "rank-outside-step": "hang",
    "host-launcher-not-known": "unknown",
}


def test_open_mpi_2_ends_in_a_cleaned_container_where_it_finds_no_ssh():
    prediction = judge(FIRES["environment-cleaned"][3], RULES)[0]
    assert prediction.outcome == "init-failure"
    assert "exits if the image has no ssh" in prediction.because


def test_mpich_that_knows_pmix_variables_aborts_where_another_runs_alone():
    wanted = ["singletons", "init-failure", "unknown", "singletons", "crash"]
    assert [judge(of, RULES)[0].outcome for of in FIRES["image-lacks-pmix"]] == wanted


def test_two_of_one_family_are_told_what_keeps_them_apart():
    pmix_alone = with_(image(mpi=msgspec.structs.replace(MPICH, interfaces=("pmix",))), pmix="5.0.1")
    plain = host(mpis=(HYDRA,), slurm=PLAIN)
    (rule,) = [rule for rule in RULES if rule.id == "host-launcher-other-family"]
    pairs = {"mpich": (plain, pmix_alone), "openmpi": (host(), OPEN_MPI_1), "other": (host(), MPICH_IMAGE)}
    said = {name: judge(case(there, of, "mpirun-host"), (rule,))[1][0] for name, (there, of) in pairs.items()}
    hydra = f"The host's MPICH 4.2.1 offers PMI; MPICH {MPICH.version} in the image does not support PMI"
    assert (said["mpich"].title, said["mpich"].fix) == (hydra, "use an image whose MPICH was built for PMI")
    assert said["openmpi"].title.endswith("offers PMIx; Open MPI 1.10.2 in the image does not support PMIx")
    assert said["openmpi"].fix == "use an image with Open MPI 4.1 or 5"
    assert said["other"].title == rule.title


def test_every_plugin_for_pmix_offers_it():
    for name in ("pmix", "pmix_v5", "pspmix"):
        bound = case(host(mpis=(OPT,)), mode="bind", launcher=("srun", f"--mpi={name}"))
        assert offer(bound) == Offer(pmix="slurm")
        by_variable = host(mpis=(HYDRA,), slurm=PLAIN, environment={"SLURM_MPI_TYPE": name})
        inherited = offer(case(by_variable, mode="mpirun-host", unset=()))
        assert inherited == Offer(pmix="slurm", pmi=True, shared=True)
    assert offer(case(host(mpis=(OPT,)), mode="bind", launcher=("srun", "--mpi=pspmi"))) == Offer()


def test_a_rank_outside_a_step_runs_alone_where_there_is_one_node():
    wanted = ["hang", "singletons", "singletons"]
    assert [judge(of, RULES)[0].outcome for of in FIRES["rank-outside-step"]] == wanted


def test_ranks_on_another_node_that_prrte_does_not_serve_end_or_wait_by_their_release():
    def outcome(client):
        of = with_(mpi(version="4.1.8", how={"pmix": "component pmix3x"}), pmix=client)
        return judge(case(of=of, mode="mpirun-host", unset=LAUNCHER.leaks), RULES)[0].outcome

    assert (outcome("3.2.3"), outcome("3.2.5")) == ("singletons", "hang")


def test_ranks_that_share_an_identity_are_right_by_accident_one_a_node():
    shared = FIRES["host-launcher-other-family"][2:6]
    assert [judge(of, RULES)[0].outcome for of in shared] == ["ok", "wrong-size", "unknown", "singletons"]


def test_intels_hydra_waits_for_ranks_on_other_nodes_that_refused_it():
    outcomes = [judge(of, RULES)[0].outcome for of in FIRES["pmix-refused"][2:]]
    assert outcomes == ["hang", "init-failure"]


def test_an_mpich_5_that_was_built_with_pmix_refuses_both_at_once_as_well():
    assert judge(FIRES["pmix-refused"][1], RULES)[0].outcome == "init-failure"


def test_open_mpi_aborts_in_a_step_from_3_on_and_is_alone_before():
    wanted = {"1.10.7": "singletons", "2.1.6": "singletons", "3.0.0": "init-failure", "4.1.8": "init-failure"}
    for mode in ("srun-none", "srun-pmi2"):
        said = {v: judge(case(of=mpi(version=v), mode=mode), RULES)[0].outcome for v in wanted}
        assert said == wanted
