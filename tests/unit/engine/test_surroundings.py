"""Test how the environment changes a launch: variables, /tmp, namespaces, number of nodes and ranks."""

from tests.unit.engine.examples import (
    HOST,
    IMAGE,
    INTEL_MPI,
    MPICH,
    OPEN_MPI_4,
    SLURM,
    image_with,
    unread,
    with_,
    without,
)
from tests.unit.tables import every_row
from toolkit.engine.host_variables import harmful_variables
from toolkit.engine.predict import predict, predict_plan
from toolkit.model.facts import HostFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Mode, Request, Verdict

NO_USER_SITE = {"PYTHONNOUSERSITE": "1"}


def outcomes(verdict: Verdict) -> dict[str, str]:
    return {p.mode: p.outcome for p in verdict.predictions}


def leaking(*names: str) -> HostFacts:
    host: HostFacts = with_(HOST, environment=dict.fromkeys(names, ""))
    return host


@every_row("name", ["APPTAINER_CLEANENV", "SINGULARITY_CONTAINALL", "APPTAINER_COMPAT", "SINGULARITY_COMPAT"])
def test_a_variable_that_cleans_the_environment_is_taken_away_or_foretells_singletons(name: str):
    ours = predict(leaking(name), IMAGE, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert ours.outcome == "ok"
    assert name in ours.plan.unset
    left = predict_plan(leaking(name), IMAGE, Request(), with_(ours.plan, unset=()))
    assert left.outcome == "singletons"


SETUID = with_(HOST.runtime, setuid=True)


def test_a_variable_that_leaves_the_home_folder_out_leaves_its_settings_out():
    host = with_(HOST, mca_params={"btl": "openib"}, infiniband=(), fabrics=())
    image = image_with(with_(OPEN_MPI_4, components={"btl": ("self", "tcp", "openib")}), "4.2.2")
    assert predict(host, image, Request()).of("srun-pmix").outcome == "crash"
    homeless = with_(host, environment={"APPTAINER_NO_HOME": ""})
    found = predict(homeless, image, Request()).of("srun-pmix")
    assert found.plan is not None
    assert (found.outcome, found.plan.unset) == ("ok", ())


@every_row("name", ["APPTAINER_USERNS", "SINGULARITY_UNSHARE_USERNS", "APPTAINER_FAKEROOT"])
def test_a_variable_that_puts_ranks_into_namespaces_of_their_own_is_taken_away_or_judged(name: str):
    host, image = with_(leaking(name), runtime=SETUID, ptrace_scope=0), image_with(UCX)
    ours = predict(host, with_(image, ucx="1.13.1"), Request(nodes=1, ranks_per_node=2)).of("srun-pmi2")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.unset) == ("ok", (name,))
    left = predict_plan(
        host, with_(image, ucx="1.13.1"), Request(nodes=1, ranks_per_node=2), with_(ours.plan, unset=())
    )
    assert left.outcome == "init-failure"
    assert "namespaces-split-a-node" in left.findings
    alone = predict_plan(host, with_(image, ucx="1.13.1"), Request(nodes=2), with_(ours.plan, unset=()))
    assert alone.outcome == "ok"


@every_row(
    ("runtime", "outcome"), [("apptainer", "singletons"), ("singularity-ce", "ok"), ("singularity", "ok")]
)
def test_a_variable_of_apptainer_is_nothing_to_singularity(runtime: str, outcome: str):
    of_other = with_(
        leaking("APPTAINER_CLEANENV"), runtime=with_(HOST.runtime, name=runtime, version="3.8.7")
    )
    plan = predict(HOST, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert predict_plan(of_other, IMAGE, Request(), plan).outcome == outcome


@every_row(("runtime", "outcome"), [("apptainer", "ok"), ("singularity-ce", "crash")])
def test_of_two_names_for_one_variable_that_of_the_runtime_itself_counts(runtime: str, outcome: str):
    set_twice = {"APPTAINERENV_OMPI_MCA_btl": "tcp,self", "SINGULARITYENV_OMPI_MCA_btl": "openib"}
    mpi = with_(OPEN_MPI_4, components={"btl": ("self", "tcp", "vader", "openib")})
    host = with_(HOST, environment=set_twice, runtime=with_(HOST.runtime, name=runtime, setuid=True))
    host = with_(host, infiniband=(), fabrics=())
    plan = predict(HOST, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert predict_plan(host, image_with(mpi, "4.2.2"), Request(), plan).outcome == outcome


def with_pmix_env(said: str) -> HostFacts:
    """Return a host on which ``PMIxEnv`` in mpi.conf makes Slurm's PMIx plugin set variables."""
    host: HostFacts = with_(HOST, slurm=with_(SLURM, settings={"PMIxEnv": said}))
    return host


def test_what_slurm_sets_in_each_rank_is_taken_away_or_judged():
    host = with_pmix_env("OMPI_MCA_btl=openib;PMIX_MCA_gds=hash;X=1")
    ours = predict(host, IMAGE, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert ours.plan.unset == ("OMPI_MCA_btl",)
    mpi = with_(OPEN_MPI_4, components={"btl": ("self", "tcp", "vader", "openib")})
    ethernet = with_(host, infiniband=(), fabrics=(), munge=True)
    image = with_(image_with(mpi, "4.2.2"), pmix_components={"psec": ("munge", "native")})
    left = predict_plan(ethernet, image, Request(), with_(ours.plan, unset=()))
    assert left.outcome == "crash"
    assert "OMPI_MCA_btl=openib" in left.because
    assert predict_plan(ethernet, image, Request(), ours.plan).outcome == "ok"
    # toolkit does not unset a variable that Slurm's PMIx server reads too, but predicts its effect.
    munge = with_(ethernet, slurm=with_pmix_env("PMIX_MCA_psec=munge").slurm)
    without = predict(munge, image, Request()).of("srun-pmix")
    assert (without.outcome, "PMIX_MCA_psec=munge" in without.because) == ("init-failure", True)
    # Other modes do not unset the variable, because only Slurm's PMIx plugin sets it.
    for mode in ("srun-none", "mpirun-host"):
        plan = predict(ethernet, image, Request()).of(mode).plan
        assert plan is not None
        assert "OMPI_MCA_btl" not in plan.unset
        assert predict_plan(ethernet, image, Request(), plan).because.count("OMPI_MCA_btl") == 0


@every_row("said", ["(null)", "", ";", "no sign"])
def test_a_slurm_that_sets_nothing_changes_nothing(said: str):
    plan = predict(with_pmix_env(said), IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    assert plan.unset == ()


UCX = with_(MPICH, device="ch4:ucx", own_shm=False)


@every_row(
    ("name", "mpi", "mode"),
    [
        ("OMPI_MCA_btl", OPEN_MPI_4, "srun-pmix"),
        ("OMPI_MCA_no_such_setting", OPEN_MPI_4, "srun-pmix"),
        ("PYTHONPATH", OPEN_MPI_4, "srun-pmix"),
        ("UCX_TLS", UCX, "srun-pmi2"),
        ("MPIR_CVAR_CH4_NETMOD", UCX, "srun-pmi2"),
    ],
)
def test_settings_of_the_host_without_a_value_are_taken_away_or_leave_the_outcome_unknown(
    name: str, mpi: ImageMpi, mode: Mode
):
    image = image_with(mpi)
    ours = predict(leaking(name), image, Request()).of(mode)
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.unset) == ("ok", (name,))
    assert predict_plan(leaking(name), image, Request(), with_(ours.plan, unset=())).outcome == "unknown"


@every_row("name", ["UCX_TLS", "FI_PROVIDER", "MPIR_CVAR_CH4_NETMOD", "I_MPI_PMI"])
def test_settings_that_the_mpi_in_the_image_does_not_read_do_no_harm(name: str):
    plan = predict(HOST, IMAGE, Request()).of("srun-pmix").plan
    assert plan is not None
    ethernet = with_(leaking(name), infiniband=())
    assert predict_plan(ethernet, IMAGE, Request(), plan).outcome == "ok"


INTEL = with_(image_with(INTEL_MPI), environment={"FI_PROVIDER": "tcp"})
ETHERNET = with_(HOST, infiniband=(), fabrics=(), interfaces=("eth0",))


@every_row(
    ("name", "outcome"),
    [
        ("FI_PROVIDER", "ok"),
        ("APPTAINERENV_FI_PROVIDER", "init-failure"),
        ("SINGULARITYENV_FI_PROVIDER", "init-failure"),
    ],
)
def test_what_an_image_sets_stands_unless_the_variable_is_meant_for_the_container(name: str, outcome: str):
    host = with_(ETHERNET, environment={name: "verbs"})
    plan = predict(ETHERNET, INTEL, Request()).of("srun-pmi2").plan
    assert plan is not None
    assert predict_plan(host, INTEL, Request(), plan).outcome == outcome
    bare = image_with(INTEL_MPI)
    assert predict_plan(host, bare, Request(), plan).outcome == "init-failure"


def test_a_folder_that_the_image_names_stands_before_the_host_s():
    image = with_(IMAGE, environment={"OPAL_PREFIX": "/opt/own"})
    host = with_(HOST, environment={"OPAL_PREFIX": "/opt/host"})
    plan = predict(HOST, image, Request()).of("srun-pmix").plan
    assert plan is not None
    assert predict_plan(host, IMAGE, Request(), plan).outcome == "init-failure"
    assert predict_plan(host, image, Request(), plan).outcome == "ok"


@every_row(
    ("version", "nodes", "fabrics", "outcome"),
    [
        ("2021.9.0", 2, "shm", "crash"),
        ("2021.17.2", 2, "shm", "crash"),
        ("2021.18.0", 2, "shm", "ok"),
        ("2021.9.0", 1, "shm", "ok"),
        ("2021.9.0", 2, "shm:ofi", "ok"),
        ("2021.9.0", 2, "tcp", "unknown"),
    ],
)
def test_intel_mpi_told_to_use_shared_memory_alone_reaches_no_other_node(
    version: str, nodes: int, fabrics: str, outcome: str
):
    image = image_with(with_(INTEL_MPI, version=version))
    host, request = (
        with_(ETHERNET, environment={"I_MPI_FABRICS": fabrics}),
        Request(nodes=nodes, ranks_per_node=2),
    )
    plan = predict(ETHERNET, image, request).of("srun-pmi2").plan
    assert plan is not None
    assert predict_plan(host, image, request, plan).outcome == outcome


@every_row(
    ("nodes", "name", "value", "outcome"),
    [
        (2, "I_MPI_FABRICS", "shm:tcp", "ok"),
        (1, "I_MPI_FABRICS", "tcp", "ok"),
        (2, "I_MPI_FABRICS", "shm:dapl", "init-failure"),
        (2, "I_MPI_FABRICS", "ofi", "init-failure"),
        (2, "I_MPI_FABRICS", "shm", "init-failure"),
        (1, "I_MPI_FABRICS", "shm", "unknown"),
        (2, "I_MPI_FABRICS_LIST", "dapl,tcp", "ok"),
        (2, "I_MPI_FABRICS_LIST", "ofi", "init-failure"),
        (2, "I_MPI_FALLBACK", "disable", "init-failure"),
        (2, "I_MPI_FALLBACK", "enable", "ok"),
        (2, "I_MPI_DAPL_PROVIDER", "ofa-v2-ib0", "ok"),
        (2, "FI_PROVIDER", "verbs", "ok"),
        (2, "I_MPI_DEVICE", "sock", "unknown"),
    ],
)
def test_intel_mpi_2018_has_networks_of_its_own(nodes: int, name: str, value: str, outcome: str):
    image, request = image_with(with_(INTEL_MPI, version="2018.3")), Request(nodes=nodes)
    bare = with_(ETHERNET, environment={name: value})
    plan = predict(ETHERNET, image, request).of("srun-pmi2").plan
    assert plan is not None
    assert predict_plan(bare, image, request, plan).outcome == outcome
    # No launch with these settings was measured on a fast network, so failures become unknown.
    fast = predict_plan(with_(bare, infiniband=("mlx5_0",)), image, request, plan).outcome
    assert fast == ("unknown" if outcome == "init-failure" and value != "shm" else outcome)


@every_row(
    ("name", "value", "library", "outcome"),
    [
        ("I_MPI_DEVICE", "rdma", "libdat2.so.2", "init-failure"),
        ("I_MPI_DEVICE", "rdssm:OpenIB-cma", "libdat2.so.2", "init-failure"),
        ("I_MPI_FABRICS", "shm:dapl", "libdat2.so.2", "init-failure"),
        ("I_MPI_FABRICS", "shm:ofa", "libibverbs.so.1", "init-failure"),
        ("I_MPI_FABRICS", "shm:tcp", "libdat2.so.2", "ok"),
    ],
)
def test_a_network_of_intel_mpi_needs_its_library_in_the_image(name, value, library, outcome):
    image, request = image_with(with_(INTEL_MPI, version="2018.3")), Request(nodes=2)
    plan = predict(ETHERNET, image, request).of("srun-pmi2").plan
    assert plan is not None
    host = with_(ETHERNET, environment={name: value}, infiniband=("mlx5_0",))
    without, has = (with_(image, libraries=names) for names in (("libc.so.6",), (library,)))
    said = predict_plan(host, without, request, plan)
    assert said.outcome == outcome
    assert outcome == "ok" or library in said.because
    assert predict_plan(host, has, request, plan).outcome != "init-failure"


def test_what_asks_for_a_fast_network_is_open_where_nobody_looked_for_one():
    image = image_with(with_(INTEL_MPI, version="2018.3"))
    plan = predict(ETHERNET, image, Request()).of("srun-pmi2").plan
    assert plan is not None
    host = with_(ETHERNET, environment={"I_MPI_FABRICS": "dapl"}, infiniband=None)
    said = predict_plan(host, image, Request(), plan)
    assert (said.outcome, said.missing) == ("unknown", ("host.infiniband",))


def test_what_the_runtime_would_set_inside_is_taken_away_by_its_own_name():
    plan = (
        predict(leaking("APPTAINERENV_OMPI_MCA_pml", "APPTAINERENV_EPOCHS"), IMAGE, Request())
        .of("srun-pmix")
        .plan
    )
    assert plan is not None
    assert plan.unset == ("APPTAINERENV_OMPI_MCA_pml",)


def test_an_environment_that_could_not_be_read_is_not_an_empty_one():
    host = with_(HOST, unknown={"environment": "awk: not found"})
    prediction = predict(host, IMAGE, Request()).of("srun-pmix")
    assert prediction.outcome == "unknown"
    assert "awk: not found" in prediction.because


def test_a_private_tmp_of_slurm_gets_the_store_that_needs_none():
    image = with_(IMAGE, pmix="5.0.7")
    private = with_(HOST, slurm=with_(SLURM, settings={"JobContainerType": "job_container/tmpfs"}))
    ours = predict(private, image, Request()).of("srun-pmix")
    assert ours.plan is not None
    assert (ours.outcome, ours.plan.env) == ("ok", {"PMIX_MCA_gds": "hash", **NO_USER_SITE})
    assert predict_plan(private, image, Request(), with_(ours.plan, env={})).outcome == "init-failure"
    assert predict_plan(private, IMAGE, Request(), with_(ours.plan, env={})).outcome == "ok"


def test_tmp_cannot_be_bound_where_the_site_lets_nobody_bind():
    runtime = with_(HOST.runtime, settings={"mount tmp": "no", "user bind control": "no"})
    assert outcomes(predict(with_(HOST, runtime=runtime), IMAGE, Request()))["srun-pmix"] == "init-failure"


@every_row(
    ("setuid", "spaces", "outcome"),
    [
        (None, True, "ok"),
        (True, None, "ok"),
        (None, None, "unknown"),
        (False, None, "unknown"),
        (None, False, "unknown"),
    ],
)
def test_either_way_to_start_a_container_is_enough(setuid: bool | None, spaces: bool | None, outcome: str):
    host = with_(HOST, user_namespaces=spaces, runtime=with_(HOST.runtime, setuid=setuid))
    assert outcomes(predict(host, IMAGE, Request()))["srun-pmix"] == outcome


ONE = Request(nodes=1, ranks_per_node=1)


def test_one_rank_is_a_world_of_its_own_whatever_it_speaks():
    assert outcomes(predict(HOST, image_with(MPICH), ONE))["srun-pmix"] == "ok"
    assert outcomes(predict(HOST, image_with(MPICH), Request(nodes=1, ranks_per_node=2)))["srun-pmix"] != "ok"


def test_one_rank_needs_no_mpi_unless_a_launcher_in_the_image_starts_it():
    verdict = predict(HOST, without(IMAGE, "mpi"), ONE)
    assert verdict.chosen == "srun-pmix"
    assert outcomes(verdict)["mpirun-container"] == "loader-failure"
    assert outcomes(predict(HOST, without(IMAGE, "mpi"), Request()))["srun-pmix"] == "loader-failure"


def test_more_nodes_than_slurm_has_are_unavailable():
    prediction = predict(HOST, IMAGE, Request(nodes=3)).of("srun-pmix")
    assert prediction.outcome == "unavailable"
    assert "the job requests 3 nodes; the largest partition has 2" in prediction.because


def test_what_a_person_sets_counts():
    six = image_with(with_(OPEN_MPI_4, version="6.0.0rc2", plugins=False), "7.0.0rc1")
    assert outcomes(predict(HOST, six, Request()))["srun-pmix"] == "comm-failure"
    given = predict(
        with_(HOST, interfaces=("eth0",)), six, Request(env={"OMPI_MCA_btl_tcp_if_include": "eth0"})
    ).of("srun-pmix")
    assert given.outcome == "ok"
    assert given.plan is not None
    assert given.plan.env == {"OMPI_MCA_btl_tcp_if_include": "eth0", **NO_USER_SITE}
    asked = Request(env={"OMPI_MCA_btl": "openib"})
    # The outcome is unknown, because the components of the image's MPI are unknown.
    assert outcomes(predict(HOST, IMAGE, asked))["srun-pmix"] == "unknown"
    other = image_with(with_(OPEN_MPI_4, components={"btl": ("self", "tcp", "vader")}))
    assert outcomes(predict(HOST, other, asked))["srun-pmix"] == "init-failure"


@every_row(
    ("mpi", "client", "mode", "env"),
    [
        (
            with_(OPEN_MPI_4, version="6.0.0rc2", plugins=False),
            "7.0.0rc1",
            "srun-pmix",
            {"OMPI_MCA_btl_tcp_if_include": "eth0"},
        ),
        (
            with_(MPICH, version="5.0.1", device="ch4:ucx,ofi"),
            None,
            "srun-pmi2",
            {"MPIR_CVAR_CH4_NETMOD": "ofi"},
        ),
    ],
)
def test_a_fault_of_a_release_is_lifted_where_no_fabric_is_shut_out(
    mpi: ImageMpi, client: str | None, mode: Mode, env: dict[str, str]
):
    image = image_with(mpi, client) if client else image_with(mpi)
    ethernet = with_(HOST, interfaces=("eth0",), infiniband=())
    lifted = predict(ethernet, image, Request()).of(mode)
    assert lifted.plan is not None
    assert (lifted.outcome, lifted.plan.env) == ("ok", {**env, **NO_USER_SITE})
    fabric = predict(with_(ethernet, infiniband=("mlx5_0",)), image, Request()).of(mode)
    assert fabric.plan is not None
    assert (fabric.outcome == "ok", fabric.plan.env) == (False, NO_USER_SITE)


def test_a_mounted_mpi_is_looked_for_before_what_the_image_has_and_the_driver_after_it():
    provider = with_(
        HOST.mpis[0], prefix="/opt/ompi", library="/opt/ompi/lib/libmpi.so.40", folders=("/opt/ompi/lib",)
    )
    image = with_(IMAGE, environment={"LD_LIBRARY_PATH": "/opt/cuda/lib64"})
    plan = predict(with_(HOST, mpis=(provider,)), image, Request()).of("bind").plan
    assert plan is not None
    assert plan.binds == ("/opt/ompi",)
    assert plan.env["LD_LIBRARY_PATH"] == "/opt/ompi/lib:/opt/cuda/lib64:/.singularity.d/libs"


@every_row("prefix", ["/work/-/ompi", "~/ompi"])
def test_an_mpi_in_a_folder_whose_name_facts_do_not_hold_cannot_be_mounted(prefix):
    provider = with_(
        HOST.mpis[0], prefix=prefix, library=f"{prefix}/lib/libmpi.so.40", folders=(f"{prefix}/lib",)
    )
    bind = predict(with_(HOST, mpis=(provider,)), IMAGE, Request()).of("bind")
    assert bind.outcome == "unavailable"
    assert "in a folder whose path contains a user name" in bind.because
    assert bind.plan is None or bind.plan.binds == ()


@every_row(
    ("version", "faces", "mode", "outcome"),
    [
        ("4.2.3", ("pmi1", "pmix"), "srun-pmix", "singletons"),
        ("4.2.3", ("pmi1", "pmix"), "srun-pmi2", "ok"),
        ("4.2.3", ("pmix",), "srun-pmix", "ok"),
        ("4.2.3", ("pmix",), "srun-pmi2", "singletons"),
        ("4.3.2", ("pmix",), "srun-pmi2", "init-failure"),
        ("5.0.2", ("pmi1", "pmix"), "srun-pmix", "ok"),
    ],
)
def test_an_mpich_takes_the_interface_that_its_release_tries_first(
    version: str, faces: tuple[str, ...], mode: Mode, outcome: str
):
    built = image_with(with_(MPICH, version=version, interfaces=faces), "5.0.7")
    assert outcomes(predict(HOST, built, Request()))[mode] == outcome


def test_an_earlier_doubt_makes_a_later_failure_uncertain():
    host = with_(HOST, mpis=(with_(HOST.mpis[0], leaks=None),))
    wheel = image_with(with_(OPEN_MPI_4, version="4.1.8", plugins=True), "3.2.5")
    prediction = predict(host, wheel, Request()).of("mpirun-host")
    assert prediction.outcome == "unknown"
    assert "could not read which variables the host's mpirun sets" in prediction.because


def test_advice_that_lacks_facts_changes_no_outcome():
    host = with_(HOST, slurm=with_(SLURM, mpi_default=None), unknown={"slurm.mpi_default": "no answer"})
    image = unread(IMAGE, "stack", "no JSON")
    verdict = predict(host, image, Request())
    assert verdict.chosen == "srun-pmix"
    assert {"mpi-default-none", "stack-disagrees"} <= {f.id for f in verdict.findings if f.undecided}


def test_parameters_of_a_network_driver_are_no_settings_of_an_mpi():
    there = {"FI_CXI_RX_MATCH_MODE": "software", "FI_PROVIDER": "cxi", "MPICH_GPU_SUPPORT_ENABLED": "1"}
    on = with_(HOST, environment=there)
    assert harmful_variables(on, "srun-pmi2") == ("FI_PROVIDER", "MPICH_GPU_SUPPORT_ENABLED")
    assert harmful_variables(on, "bind") == ("FI_PROVIDER",)
