"""Test the rules about the host's mpirun outside the container, and the image's mpirun inside it."""

import msgspec

from tests.unit.engine.examples import INTEL_MPI
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
from toolkit import knowledge
from toolkit.engine.judge import judge
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import predict
from toolkit.engine.registry import RULES
from toolkit.model.prediction import Request

UNSET = {"unset": LAUNCHER.leaks, "env": {"SLURM_STEP_ID": "0"}}
OPEN_MPI_3 = msgspec.structs.replace(LAUNCHER, version="3.1.4", pmix="2.1.4")
ORTE = msgspec.structs.replace(
    LAUNCHER, version="4.1.8", pmix="3.2.5", leaks=("OPAL_PREFIX", "PMIX_INSTALL_PREFIX"), plugins=None
)
NEWEST = host(
    mpis=(
        msgspec.structs.replace(
            LAUNCHER, version="6.0.0rc2", pmix="7.0.0rc1", leaks=("PMIX_MCA_mca_base_component_path",)
        ),
    )
)
PLUGGED = with_(IMAGE, pmix="3.1.5", pmix_plugins=True)
OWN_PMIX = {"btl": ("self", "tcp", "vader"), "pmix": ("isolated", "pmix3x")}
WHEEL = with_(mpi(version="4.1.8", plugins=False, components=OWN_PMIX), pmix="3.2.5")
PLUGINS = with_(mpi(version="4.0.7", components=OWN_PMIX), pmix="3.2.3")
OUTER_PMIX = mpi(components={"btl": ("self", "tcp"), "pmix": ("ext3x", "isolated")})
OPEN_MPI_5 = with_(mpi(version="5.0.10", plugins=False, components={}), pmix="5.0.10")
HALF = {"mode": "mpirun-host", "unset": ("OPAL_PREFIX",)}
HYDRA = msgspec.structs.replace(LAUNCHER, implementation="mpich", version="4.2.1", pmix=None, leaks=())
NO_SSH = absent(IMAGE, "ssh")
OPEN_MPI_2 = with_(mpi(version="2.1.1", components={"pmix": ("pmix112",)}), pmix="1.2.1")
OPEN_MPI_1 = absent(mpi(version="1.10.2", interfaces=(), components={}), "pmix")
NO_MPIRUN = absent(image(mpi=msgspec.structs.replace(MPICH, launcher="/opt/venv/bin/mpiexec")), "mpirun")
OPEN_MPI_FIRST = image(
    mpi=msgspec.structs.replace(MPICH, launcher="/opt/mpich/bin/mpiexec.hydra"),
    other_mpis=(IMAGE.mpi,),
    mpirun=IMAGE.mpi.launcher,
)
OPEN_MPI_ONLY = image(
    mpi=msgspec.structs.replace(MPICH, launcher=None),
    other_mpis=(IMAGE.mpi,),
    mpirun=IMAGE.mpi.launcher,
    absent={**IMAGE.absent, "mpi.launcher": "none"},
)
OWN_LIBRARY = msgspec.structs.replace(IMAGE.mpi, library="/opt/app/lib/libmpi.so.40")
OTHER_5 = msgspec.structs.replace(IMAGE.mpi, version="5.0.7", pmix="5.0.7")
INSIDE = {"mode": "mpirun-container", "nodes": 1, "launcher": ("mpirun",)}


def beside(other=OTHER_5, pmix="3.2.5", **changes):
    """Return an image whose program loads an MPI that differs from the MPI of the image's mpirun."""
    own = msgspec.structs.replace(OWN_LIBRARY, **changes)
    return with_(image(mpi=own, other_mpis=(other,) if other else (), mpirun=own.launcher), pmix=pmix)


PMIX_ALONE = image(mpi=msgspec.structs.replace(MPICH, version="4.2.0", interfaces=("pmix",)))
INTEL_2019 = image(mpi=msgspec.structs.replace(INTEL_MPI, version="2019.4"))
FORK = {"launcher": ("/usr/bin/mpirun", "-launcher", "fork")}
BY_AGENT = {"launcher": ("/usr/bin/mpirun", "--mca", "plm_rsh_agent", "toolkit-agent")}

FIRES = {
    "launcher-of-batch-system": [
        case(mode="mpirun-host", launcher=("aprun",)),
        case(of=image(mpi=MPICH), mode="srun-none", launcher=("/usr/bin/aprun", "-n", "2")),
        case(
            of=image(mpi=msgspec.structs.replace(MPICH, implementation="cray")),
            mode="srun-none",
            launcher=("aprun",),
        ),
        case(mode="mpirun-host", launcher=("jsrun",)),
        case(of=image(mpi=MPICH), mode="mpirun-host", launcher=("flux", "run")),
    ],
    "host-launcher-leaks": [
        case(mode="mpirun-host", env={"SLURM_STEP_ID": "0"}),
        case(host(mpis=(msgspec.structs.replace(LAUNCHER, leaks=None),)), mode="mpirun-host"),
        case(NEWEST, PLUGGED, "mpirun-host"),
    ],
    "launcher-prefix-half-removed": [
        case(host(mpis=(ORTE,)), WHEEL, **HALF),
        case(host(mpis=(ORTE,)), PLUGINS, **HALF),
    ],
    "launcher-pmix-pair": [
        case(of=WHEEL, mode="mpirun-host", env={"SLURM_STEP_ID": "0"}),
        case(of=with_(IMAGE, pmix="9.0.0"), mode="mpirun-host", **UNSET),
        case(of=with_(IMAGE, pmix="2.1.0"), mode="mpirun-host", nodes=1, **UNSET),
        case(of=OPEN_MPI_2, mode="mpirun-host", **UNSET),
        case(of=absent(OPEN_MPI_2, "ssh"), mode="mpirun-host", **UNSET),
        case(of=with_(mpi(implementation="cray"), pmix="1.2.5"), mode="mpirun-host", **UNSET),
    ],
    "container-launcher-absent": [
        case(
            of=with_(mpi(launcher=None), absent={**IMAGE.absent, "mpi.launcher": "none"}),
            mode="mpirun-container",
        ),
        case(of=NO_MPIRUN, mode="mpirun-container", nodes=1, launcher=("mpirun",)),
        case(of=absent(absent(IMAGE, "mpi"), "mpirun"), mode="mpirun-container", program="torch"),
        case(of=OPEN_MPI_ONLY, mode="mpirun-container", nodes=1, launcher=("mpirun", "-launcher", "fork")),
    ],
    "container-launcher-fails": [
        case(mode="mpirun-container"),
        case(of=NO_SSH, mode="mpirun-container", nodes=1),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1),
        case(of=mpi(implementation="cray"), mode="mpirun-container", nodes=1),
        case(of=OPEN_MPI_FIRST, mode="mpirun-container", nodes=1, launcher=("mpirun",)),
        case(of=PMIX_ALONE, mode="mpirun-container", nodes=1, **FORK),
        case(of=mpi(version="3.1.6"), mode="mpirun-container", **BY_AGENT),
        case(mode="mpirun-container", allocation=False, **BY_AGENT),
        case(of=image(mpirun="/usr/local/bin/mpirun"), **INSIDE),
        case(of=beside(None), **INSIDE),
        case(of=beside(version="4.1.8", pmix="3.2.3"), **INSIDE),
        case(of=beside(version="4.1.4", pmix="4.2.2"), **INSIDE),
        case(of=beside(version="4.1.8", pmix="9.0.0"), **INSIDE),
        case(of=beside(version="1.10.2", interfaces=(), pmix=None), **INSIDE),
        case(of=NO_MPIRUN, **INSIDE),
        case(of=INTEL_2019, mode="mpirun-container", nodes=1),
        case(msgspec.structs.replace(HOST, cpu_threads=1), INTEL_2019, "mpirun-container", nodes=1),
    ],
}
QUIET = {
    "launcher-of-batch-system": [
        case(mode="mpirun-host"),
        case(mode="mpirun-host", launcher=("ibrun",)),
        case(mode="mpirun-host", launcher=("aprun",), nodes=1),
        case(of=absent(IMAGE, "mpi"), mode="srun-none", launcher=("aprun",)),
    ],
    "host-launcher-leaks": [
        case(mode="mpirun-host", **UNSET),
        case(of=mpi(plugins=False), mode="mpirun-host"),
        case(host(mpis=(HYDRA,)), mode="mpirun-host"),
        case(NEWEST, mode="mpirun-host"),
        case(
            NEWEST,
            PLUGGED,
            "mpirun-host",
            unset=("PMIX_MCA_mca_base_component_path",),
            env={"SLURM_STEP_ID": "0"},
        ),
        case(NEWEST, with_(IMAGE, pmix="1.2.1", pmix_plugins=None), "mpirun-host"),
        case(NEWEST, absent(image(mpi=MPICH), "pmix"), "mpirun-host"),
    ],
    "launcher-prefix-half-removed": [
        case(mode="mpirun-host", **UNSET),
        case(host(mpis=(ORTE,)), WHEEL, "mpirun-host"),
        case(host(mpis=(ORTE,)), WHEEL, "mpirun-host", unset=ORTE.leaks),
        case(host(mpis=(ORTE,)), WHEEL, "mpirun-host", unset=("PMIX_INSTALL_PREFIX",)),
        case(host(mpis=(ORTE,)), OUTER_PMIX, **HALF),
        case(host(mpis=(ORTE,)), OPEN_MPI_5, **HALF),
    ],
    "launcher-pmix-pair": [
        case(mode="mpirun-host", **UNSET),
        case(of=absent(image(mpi=MPICH), "pmix"), mode="mpirun-host"),
        case(host(mpis=(HYDRA,)), mode="mpirun-host"),
        case(
            host(mpis=(OPEN_MPI_3,)), with_(mpi(version="3.1.4"), pmix="2.1.4"), mode="mpirun-host", **UNSET
        ),
    ],
    "container-launcher-absent": [
        case(mode="mpirun-container"),
        case(of=absent(IMAGE, "mpi"), mode="mpirun-container"),
        case(of=NO_MPIRUN, mode="mpirun-container", nodes=1, launcher=("/opt/venv/bin/mpiexec",)),
    ],
    "container-launcher-fails": [
        case(mode="mpirun-container", nodes=1),
        case(mode="mpirun-container", **BY_AGENT),
        case(of=NO_SSH, mode="mpirun-container", ranks_per_node=2, **BY_AGENT),
        case(
            of=with_(mpi(launcher=None), absent={**IMAGE.absent, "mpi.launcher": "none"}),
            mode="mpirun-container",
        ),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1, **FORK),
        case(of=image(mpi=MPICH), mode="mpirun-container", nodes=1, allocation=False),
        case(of=OPEN_MPI_1, mode="mpirun-container", nodes=1),
        case(of=absent(OPEN_MPI_1, "ssh"), mode="mpirun-container", nodes=1),
        case(of=beside(version="5.0.7", pmix="5.0.7"), **INSIDE),
        case(of=beside(version="5.0.10", pmix="5.0.10"), **INSIDE),
    ],
}
UNDECIDED = {
    "launcher-of-batch-system": [case(of=unread(IMAGE, "mpi"), mode="mpirun-host", launcher=("aprun",))],
    "host-launcher-leaks": [case(NEWEST, with_(IMAGE, pmix_plugins=None), "mpirun-host")],
    "launcher-prefix-half-removed": [
        case(host(mpis=(ORTE,)), mpi(version="4.1.8", components={}), **HALF),
    ],
    "launcher-pmix-pair": [
        case(of=unread(IMAGE, "pmix"), mode="mpirun-host"),
        case(of=unread(OPEN_MPI_2, "ssh"), mode="mpirun-host", **UNSET),
    ],
    "container-launcher-fails": [
        case(of=unread(IMAGE, "ssh"), mode="mpirun-container"),
        case(of=unread(OPEN_MPI_FIRST, "mpirun"), mode="mpirun-container", launcher=("mpirun",)),
        case(unread(HOST, "cpu_vendor", "cpu_threads"), INTEL_2019, "mpirun-container", nodes=1),
    ],
}
OUTCOMES = {
    "launcher-of-batch-system": "init-failure",
    "host-launcher-leaks": "init-failure",
    "launcher-prefix-half-removed": "init-failure",
    "launcher-pmix-pair": "init-failure",
    "container-launcher-absent": "unavailable",
    "container-launcher-fails": "init-failure",
}


def test_an_mpirun_of_another_mpi_is_named():
    found = judge(FIRES["container-launcher-absent"][-1], RULES)[0]
    assert (found.outcome, found.why) == ("init-failure", "Open MPI 4.1.6 cannot start ranks of MPICH 4.2.1")


def test_what_was_not_seen_or_measured_is_unknown():
    exports, pair = FIRES["host-launcher-leaks"][1], FIRES["launcher-pmix-pair"][1]
    assert [judge(of, RULES)[0].outcome for of in (exports, pair)] == ["unknown", "unknown"]


def test_a_pmix_with_its_components_as_files_does_not_find_them_in_a_folder_of_the_host():
    hidden, kept = FIRES["host-launcher-leaks"][2], QUIET["host-launcher-leaks"][4]
    assert judge(hidden, RULES)[0].outcome == "init-failure"
    assert judge(kept, RULES)[0].outcome == "ok"


def test_half_of_a_prefix_ends_an_open_mpi_with_its_own_pmix_and_no_other():
    outcomes = {
        of.mpi.version: judge(case(host(mpis=(ORTE,)), of, **HALF), RULES)[0].outcome
        for of in (WHEEL, PLUGINS, OPEN_MPI_5, OUTER_PMIX)
    }
    assert outcomes == {"4.1.8": "init-failure", "4.0.7": "init-failure", "5.0.10": "ok", "4.1.6": "ok"}


def test_the_other_half_is_taken_away_where_the_host_sets_the_one():
    module = host(mpis=(ORTE,), environment={"OPAL_PREFIX": "/opt/openmpi-4.1.8"})
    made = predict(module, WHEEL, Request(nodes=2)).of("mpirun-host")
    assert made.plan is not None
    assert made.plan.unset == ("OPAL_PREFIX", "PMIX_INSTALL_PREFIX")
    assert made.outcome == "ok"


def test_a_launcher_that_starts_no_rank_fails_before_anything_that_a_rank_does():
    hydra = image(mpi=msgspec.structs.replace(MPICH, version="5.0.2", device="ch4:ucx"))
    broken = host(environment={"UCX_TLS": "rc"}, infiniband=())
    old = absent(image(mpi=msgspec.structs.replace(INTEL_MPI, version="2021.9.0")), "libfabric", "ssh")
    for of in (case(broken, hydra, "mpirun-container", nodes=1), case(of=old, mode="mpirun-container")):
        assert judge(of, RULES)[0].outcome == "hang"


def test_the_launcher_of_mvapich_is_that_of_mpich():
    mvapich = absent(
        image(mpi=msgspec.structs.replace(MPICH, implementation="mvapich2", version="2.3.7")), "ssh"
    )
    ours = predict(host(infiniband=()), mvapich, Request(nodes=1)).of("mpirun-container")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.launcher[1:]) == ("ok", ("-launcher", "fork"))
    plain = case(of=mvapich, mode="mpirun-container", nodes=1)
    assert judge(plain, RULES)[0].outcome == "hang"
    outside = case(of=mvapich, mode="mpirun-container", nodes=1, allocation=False)
    assert judge(outside, RULES)[0].outcome == "ok"


def test_open_mpi_2_needs_ssh_for_a_daemon_of_its_own_and_munge_ends_that():
    outcomes = {
        (munge, with_ssh): [
            judge(case(with_(HOST, munge=munge), of, mode), RULES)[0].outcome
            for mode in ("srun-pmix", "srun-pmi2", "srun-none")
        ]
        for munge in (True, False)
        for with_ssh, of in ((True, OPEN_MPI_2), (False, absent(OPEN_MPI_2, "ssh")))
    }
    assert outcomes == {
        (True, True): ["crash", "singletons", "singletons"],
        (False, True): ["singletons"] * 3,
        (True, False): ["init-failure"] * 3,
        (False, False): ["init-failure"] * 3,
    }


def test_ranks_whose_components_are_hidden_end_before_they_wait_for_a_step():
    hidden = [with_(mpi(version="4.0.3"), pmix="3.2.5"), OPEN_MPI_2]
    assert [judge(case(of=of, mode="mpirun-host"), RULES)[0].outcome for of in hidden] == ["init-failure"] * 2
    seen = case(of=hidden[0], mode="mpirun-host", unset=LAUNCHER.leaks)
    assert judge(seen, RULES)[0].outcome == "hang"


@every_row(("version", "client"), [("4.0.3", "3.1.5"), ("3.1.6rc3", "2.2.3"), ("3.1.3rc3", "2.1.4")])
def test_a_pmix_client_before_3_2_meets_ranks_of_its_own_node_alone_under_prrte(version, client):
    of = with_(mpi(version=version), pmix=client)
    found = [judge(case(of=of, mode="mpirun-host", nodes=n, **UNSET), RULES)[0].outcome for n in (1, 2)]
    assert found == ["ok", "comm-failure"]


@every_row(
    ("version", "outcome"),
    [
        ("1.10.2", "ok"),
        ("2.1.6", "init-failure"),
        ("3.0.0", "crash"),
        ("3.1.6", "crash"),
        ("4.0.2", "crash"),
        ("4.0.3", "init-failure"),
        ("4.1.8", "init-failure"),
    ],
)
def test_how_an_mpirun_ends_that_finds_no_ssh_turns_on_its_release(version, outcome):
    of = absent(mpi(version=version), "ssh")
    assert judge(case(of=of, **INSIDE), RULES)[0].outcome == outcome
    assert judge(case(of=with_(of, ssh="/usr/bin/ssh"), **INSIDE), RULES)[0].outcome == "ok"


@every_row(
    ("version", "nodes", "words"),
    [
        ("1.10.2", 1, ()),
        ("2.1.1", 1, ("--mca", "plm", "isolated")),
        ("4.1.8", 1, ("--mca", "plm", "isolated")),
        ("3.1.6", 2, ()),
        ("5.0.9", 1, ()),
    ],
)
def test_an_mpirun_that_asks_for_ssh_in_vain_is_told_to_do_without_on_one_node(version, nodes, words):
    of, request = absent(mpi(version=version), "ssh"), Request(nodes=nodes, ranks_per_node=2)
    plan = propose(HOST, of, request, "mpirun-container")
    assert plan.launcher == (of.mpi.launcher, *words)
    if words:
        with_ssh = propose(HOST, mpi(version=version), request, "mpirun-container")
        assert with_ssh.launcher == (of.mpi.launcher,)
        assert (
            judge(case(of=of, mode="mpirun-container", nodes=1, launcher=plan.launcher), RULES)[0].outcome
            == "ok"
        )


@every_row(
    ("version", "variable", "outcome"),
    [
        ("3.1.6", "OMPI_MCA_plm_rsh_agent", "crash"),
        ("4.0.2", "OMPI_MCA_plm_rsh_agent", "crash"),
        ("4.0.3", "OMPI_MCA_plm_rsh_agent", "ok"),
        ("3.1.6", "ANOTHER", "ok"),
    ],
)
def test_an_empty_agent_spares_mpirun_its_ssh_since_4_0_3_and_ended_it_before(version, variable, outcome):
    of = with_(mpi(version=version), ssh="", environment={variable: ""})
    assert judge(case(of=of, **INSIDE), RULES)[0].outcome == outcome


def test_an_mpirun_of_another_release_in_the_image_is_judged_as_one_of_the_host():
    found = [judge(of, RULES)[0].outcome for of in FIRES["container-launcher-fails"][8:14]]
    assert found == ["unknown", "unknown", "init-failure", "unknown", "unknown", "unknown"]
    orte = msgspec.structs.replace(OTHER_5, version="4.1.4", pmix="4.2.2")
    waits = beside(orte, version="1.10.2", interfaces=(), pmix=None)
    assert judge(case(of=waits, **INSIDE), RULES)[0].outcome == "hang"


def test_a_cleaned_container_has_no_variable_of_the_launcher_that_could_hide_components():
    for option in ("--cleanenv", "--containall"):
        assert judge(case(mode="mpirun-host", container=(option,)), RULES)[0].outcome == "singletons"


def test_the_plan_says_which_proof_of_identity_counts():
    found = {
        word: judge(case(of=OPEN_MPI_2, env={"PMIX_SECURITY_MODE": word}), RULES)[0].outcome
        for word in ("native", "munge,native")
    }
    assert found == {"native": "singletons", "munge,native": "crash"}


def test_the_daemon_that_munge_ends_comes_before_settings_but_for_one_that_ends_it_sooner():
    def outcome(name, value, **launch):
        leaky = with_(HOST, environment={name: value})
        return judge(case(leaky, OPEN_MPI_2, "srun-pmix", **launch), RULES)[0].outcome

    assert outcome("OMPI_MCA_pml", "ucx") == "crash"
    assert outcome("PMIX_MCA_psec", "munge") == "crash"
    assert outcome("OMPI_MCA_ess", "singleton") == "init-failure"
    assert outcome("OMPI_MCA_pml", "ucx", container=("--cleanenv",)) == "singletons"


def test_components_that_are_missing_end_a_rank_that_is_alone_and_those_that_reach_nobody_do_not():
    alone = mpi(
        version="5.0.10", interfaces=("pmix",), components={"btl": ("self", "sm", "tcp"), "pml": ("ob1",)}
    )

    def outcome(name, value):
        return judge(case(with_(HOST, environment={name: value}), alone, "srun-pmi2"), RULES)[0].outcome

    found = {
        (name, value): outcome(f"OMPI_MCA_{name}", value)
        for name, value in (("pml", "ucx"), ("btl", "openib"), ("btl", "self"), ("btl", "self,tcp"))
    }
    assert found == {
        ("pml", "ucx"): "init-failure",
        ("btl", "openib"): "init-failure",
        ("btl", "self"): "singletons",
        ("btl", "self,tcp"): "singletons",
    }


def test_without_tmp_orte_ends_a_rank_that_is_alone_and_open_mpi_5_does_not():
    found = {
        version: judge(
            case(of=mpi(version=version), mode="srun-pmi2", container=("--no-mount", "tmp")), RULES
        )[0].outcome
        for version in ("1.10.2", "5.0.10")
    }
    assert found == {"1.10.2": "init-failure", "5.0.10": "singletons"}


def test_open_mpi_1_waits_for_an_orte_of_another_release_and_is_alone_under_prrte():
    old = with_(OPEN_MPI_1, mpi=msgspec.structs.replace(OPEN_MPI_1.mpi, plugins=True))
    under = {
        "orte": case(
            host(mpis=(msgspec.structs.replace(LAUNCHER, version="4.1.4", leaks=()),)), old, "mpirun-host"
        ),
        "its own": case(
            host(mpis=(msgspec.structs.replace(LAUNCHER, version="1.10.2", leaks=()),)), old, "mpirun-host"
        ),
        "prrte": case(of=old, mode="mpirun-host", unset=LAUNCHER.leaks),
        "prrte, hidden": case(of=old, mode="mpirun-host"),
    }
    found = {name: judge(of, RULES)[0].outcome for name, of in under.items()}
    assert found == {
        "orte": "hang",
        "its own": "ok",
        "prrte": "singletons",
        "prrte, hidden": "init-failure",
    }


def test_the_last_row_about_a_launcher_is_about_every_mpi():
    last = {row.program: row for row in knowledge.mpi().starter}
    assert all(row.of(None) for row in last.values())


def test_one_series_of_pmix_on_both_sides_is_compatible():
    old = {"version": "2.1.5", "pmix": "1.2.5"}
    rules = tuple(rule for rule in RULES if rule.id == "launcher-pmix-pair")
    on = host(mpis=(msgspec.structs.replace(LAUNCHER, **old),))
    said = [
        judge(case(on, with_(mpi(version="2.1.5"), pmix=client), "mpirun-host", nodes=1), rules)[0].outcome
        for client in ("1.2.5", "1.2.4", "1.1.5")
    ]
    assert said == ["ok", "ok", "unknown"]
