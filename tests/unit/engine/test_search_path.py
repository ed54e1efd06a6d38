"""Test which MPI of an image a program loads if a launch adds folders to the library search path."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, MPI, MPICH, absent, host, runtime, with_
from toolkit.engine.planning.proposal import propose
from toolkit.engine.predict import case_of, predict, predict_plan
from toolkit.engine.search_path import apply_search_path
from toolkit.model.prediction import Plan, Request

OLD = with_(MPI, version="4.1.4", library="/usr/lib/libmpi.so.40.30.4", interfaces=("pmix",))
NEW = with_(MPI, version="5.0.9", library="/opt/venv/lib/libmpi.so.40")
TWO = with_(
    IMAGE,
    mpi=NEW,
    other_mpis=(OLD,),
    pmix="5.0.9",
    environment={"LD_LIBRARY_PATH": "/opt/venv/lib"},
    programs={"/opt/train": NEW.library},
    programs_otherwise={"/opt/train": OLD.library},
)


def plan(path: str | None, mode="srun-pmi2") -> Plan:
    env = {} if path is None else {"LD_LIBRARY_PATH": path}
    return Plan(mode=mode, launcher=("srun", "--mpi=pmi2"), env=env)


def test_another_path_lets_programs_load_the_other_mpi():
    found = apply_search_path(HOST, TWO, plan("/opt/cuda/lib"))
    assert found.mpi == OLD
    assert found.programs == {"/opt/train": OLD.library}
    assert found.pmix is None
    assert "pmix" in found.unknown
    client = apply_search_path(
        HOST, with_(TWO, other_mpis=(with_(OLD, pmix="4.2.2"),)), plan("/opt/cuda/lib")
    )
    assert (client.pmix, "pmix" in client.unknown) == ("4.2.2", False)
    assert case_of(HOST, TWO, Request(nodes=2), plan("/opt/cuda/lib")).image_facts == found


def test_a_path_that_keeps_the_image_s_folder_changes_nothing():
    assert apply_search_path(HOST, TWO, plan("/opt/cuda/lib:/opt/venv/lib")) is TWO
    assert apply_search_path(HOST, TWO, plan(None)) is TWO
    assert apply_search_path(HOST, IMAGE, plan("/opt/cuda/lib")) is IMAGE
    assert apply_search_path(HOST, absent(TWO, "mpi"), plan("/opt/cuda/lib")).mpi is None


def test_a_library_that_speaks_no_pmix_has_no_client():
    other = with_(MPICH, library=OLD.library)
    found = apply_search_path(HOST, with_(TWO, other_mpis=(other,)), plan("/opt/cuda/lib"))
    assert (found.mpi, found.pmix) == (other, None)
    assert "pmix" in found.absent


def test_programs_that_find_none_are_told_so():
    alone = with_(TWO, programs_otherwise={"/opt/train": ""})
    found = apply_search_path(HOST, alone, plan("/opt/cuda/lib"))
    assert (found.mpi, found.programs) == (NEW, {"/opt/train": ""})
    told = predict_plan(HOST, alone, Request(nodes=2), plan("/opt/cuda/lib", "srun-pmix"))
    assert told.outcome == "unknown"
    assert "LD_LIBRARY_PATH" in told.because


def test_the_silent_failure_of_the_one_is_the_loud_one_of_the_other():
    request = Request(nodes=2)
    assert predict_plan(HOST, TWO, request, plan(None)).outcome == "singletons"
    assert predict_plan(HOST, TWO, request, plan("/opt/cuda/lib")).outcome == "init-failure"


def test_a_path_that_shares_another_folder_does_not_lead_to_the_mpi():
    wide = with_(TWO, environment={"LD_LIBRARY_PATH": "/opt/venv/lib:/opt/cuda/lib"})
    assert apply_search_path(HOST, wide, plan("/opt/cuda/lib")).mpi == OLD


def test_a_path_that_names_another_mpi_of_the_image_leads_to_it():
    third = with_(MPI, version="4.1.8", library="/opt/third/lib/libmpi.so.40")
    three = with_(TWO, other_mpis=(OLD, third))
    assert apply_search_path(HOST, three, plan("/opt/third/lib")).mpi == third


def test_what_was_said_of_the_other_mpi_stands_in_its_place():
    told = {"mpi.launcher": "/opt/venv/bin/mpirun", "other_mpis.0.interfaces": "pmix, by a component"}
    found = apply_search_path(HOST, msgspec.structs.replace(TWO, evidence=told), plan("/opt/cuda/lib"))
    assert found.evidence["mpi.interfaces"] == "pmix, by a component"
    assert "mpi.launcher" not in found.evidence


def test_the_plan_is_for_the_mpi_that_is_loaded():
    asked = Request(nodes=2, env={"LD_LIBRARY_PATH": "/opt/cuda/lib"})
    verdict = predict(HOST, TWO, asked)
    told = predict_plan(HOST, with_(TWO, mpi=OLD, pmix=None), asked, verdict.of("mpirun-host").plan)
    proposed = propose(HOST, with_(TWO, mpi=OLD), asked, "mpirun-host")
    assert verdict.of("mpirun-host").plan == with_(proposed, env={**proposed.env, "PYTHONNOUSERSITE": "1"})
    assert told.plan == verdict.of("mpirun-host").plan


def test_a_variable_of_the_host_sets_the_path_as_well():
    told = host(environment={"APPTAINERENV_LD_LIBRARY_PATH": "/opt/cuda/lib"})
    assert apply_search_path(told, TWO, plan(None)).mpi == OLD
    assert apply_search_path(told, TWO, plan("/opt/venv/lib")) is TWO
    away = with_(plan(None), unset=("APPTAINERENV_LD_LIBRARY_PATH",))
    assert apply_search_path(told, TWO, away) is TWO


def test_a_path_that_nobody_told_leaves_the_mpi_unknown():
    hidden = host(environment={"SINGULARITYENV_LD_LIBRARY_PATH": ""})
    assert predict_plan(hidden, TWO, Request(nodes=2), plan(None)).outcome == "unknown"
    assert "LD_LIBRARY_PATH" in apply_search_path(hidden, TWO, plan(None)).unknown["mpi"]
    assert apply_search_path(hidden, IMAGE, plan(None)) is IMAGE
    assert apply_search_path(hidden, TWO, plan("")).mpi == OLD


def test_an_apptainer_that_puts_the_distribution_first_leaves_two_mpis_of_one_name_undecided():
    own = with_(TWO, environment={}, programs_otherwise={})
    nv = Plan(mode="srun-pmix", launcher=("srun", "--mpi=pmix"), container=("--nv",))

    def release(version: str, name: str = "apptainer"):
        return host(runtime=with_(HOST.runtime, version=version, name=name))

    found = apply_search_path(release("1.5.0"), own, nv)
    assert found.mpi is None
    assert "before DT_RUNPATH" in found.unknown["mpi"]
    assert predict_plan(release("1.5.0"), own, Request(nodes=2), nv).outcome == "unknown"
    alone = with_(own, other_mpis=(with_(OLD, soname="libmpi.so.20"),))
    system = with_(own, mpi=OLD, other_mpis=(NEW,))
    said = with_(own, environment={"LD_LIBRARY_PATH": "/opt/venv/lib"})
    for kept in (alone, system, said):
        assert apply_search_path(release("1.5.0"), kept, nv) is kept
    assert apply_search_path(release("1.4.5"), own, nv) is own
    assert apply_search_path(release("4.3.7", "singularity-ce"), own, nv) is own
    assert apply_search_path(release("1.5.0"), own, with_(nv, container=())) is own
    assert apply_search_path(host(runtime=None), own, nv) is own


def by_charliecloud(*options: str, mode="srun-pmi2"):
    """Return the image's facts in a launch by Charliecloud, which sets only the image variables in
    ``options``.
    """
    made = Plan(mode=mode, launcher=("srun",), container=("--write-fake", *options))
    apart = with_(
        TWO, environment={**TWO.environment, "PATH": "/opt/venv/bin"}, mpirun="/opt/venv/bin/mpirun"
    )
    return case_of(runtime(name="ch-run", version="0.38"), apart, Request(nodes=2), made).image_facts


def test_a_runtime_sets_only_the_variables_of_the_image_that_its_options_name():
    alone = by_charliecloud()
    assert (alone.environment, alone.mpi, alone.mpirun) == ({}, OLD, None)
    assert "PATH" in alone.absent["mpirun"]
    named = by_charliecloud("--set-env=LD_LIBRARY_PATH=/opt/venv/lib", "--set-env=PATH=/opt/venv/bin")
    assert (named.mpi, named.mpirun) == (NEW, "/opt/venv/bin/mpirun")
    whole = by_charliecloud("--set-env")
    assert (whole.mpi, whole.environment) == (NEW, {**TWO.environment, "PATH": "/opt/venv/bin"})


def test_the_plan_names_all_variables_of_the_image_for_such_a_runtime():
    there = runtime(name="ch-run", version="0.38")
    made = propose(there, TWO, Request(nodes=2), "srun-pmi2")
    assert case_of(there, TWO, Request(nodes=2), made).image_facts.environment == TWO.environment
