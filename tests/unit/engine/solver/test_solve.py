"""Test which versions the solver chooses and why, on recorded clusters."""

from pathlib import Path

from tests.unit.engine.examples import HOST, with_, without
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.engine.solver.solve import Conflict, solve
from toolkit.engine.solver.stack_prediction import stack_facts
from toolkit.image.locks.recipe import load, parse
from toolkit.knowledge.components import components
from toolkit.knowledge.stacks import stacks
from toolkit.launch.request.layers import DEFAULTS
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Request
from toolkit.model.solution import Solution
from toolkit.probe.probe import load as load_facts
from toolkit.versions import is_wish

EVIDENCE = Path(__file__).parents[3] / "evidence"
RECORDED = load_facts(EVIDENCE / "virtual-cluster-login.txt")
SERVING_PMI2 = with_(
    HOST, slurm=with_(HOST.slurm, mpi_types=("none", "pmi2"), mpi_default="pmi2"), mpis=(), pmix=None
)
SERVING_NONE = with_(SERVING_PMI2, slurm=with_(HOST.slurm, mpi_types=("none",), mpi_default="none"))
HYDRA = HostMpi(implementation="mpich", version="4.2.1", launcher="/usr/bin/mpiexec.hydra", leaks=())
MPICH_ONLY = with_(SERVING_PMI2, mpis=(HYDRA,))
FACES = ("openmpi", "mpich")


def recipe(wants: str, head: str = "", tail: str = ""):
    return parse(f'schema = "toolkit.recipe/2"\ntitle = "t"\n{head}\n[want]\n{wants}\n{tail}', "r.toml")


def chosen(wanted, host=None) -> Solution:
    found = solve(wanted, "r", stacks(), host)
    assert isinstance(found, Solution), found
    return found


def conflict(wanted, host=None) -> Conflict:
    found = solve(wanted, "r", stacks(), host)
    assert isinstance(found, Conflict), found
    return found


def mode_of(solution: Solution, host, operations=("mpi", "gloo")):
    table = stacks()
    taken = {
        c.component: next(
            r for r in table.rows(c.component) if (r.version, r.provider) == (c.version, c.provider)
        )
        for c in solution.chosen
    }
    image = stack_facts(table, solution.architecture, taken, operations)
    verdict = predict(host, image, Request())
    return verdict.chosen or ("gloo" if verdict.of("gloo").outcome == "ok" else None)


def test_the_image_of_the_demo_has_what_it_always_had():
    versions = chosen(load("tf2.15-cpu").recipe).versions
    assert versions["tensorflow"] == "2.15.1"
    assert (versions["base"], versions["python"]) == ("debian:bookworm", "3.11")
    assert (versions["openmpi"], versions["pmix"], versions["horovod"]) == ("4.1.4", "4.2.2", "0.28.1")
    assert "keras" not in versions


def test_horovod_brings_keras_2_where_tensorflow_no_longer_does():
    solution = chosen(load("tf2.18-cpu").recipe)
    assert solution.versions["keras"] == "2.18.0"
    assert solution.of("keras").why.startswith("horovod 0.28.1 needs it; not 2.21.0, as ")


def test_the_cuda_recipe_takes_the_tensorflow_for_gpus_and_what_that_names():
    versions = chosen(load("tf2.14-cuda11.8").recipe).versions
    assert versions["tensorflow"] == "2.14.1"
    assert {"cuda", "cudnn", "nccl"} <= set(versions)


def test_a_base_that_has_it_all_is_left_as_it_is():
    solution = chosen(load("ngc21.10").recipe)
    assert {c.provider for c in solution.chosen} == {"base", "published"}


def test_no_base_of_somebody_is_taken_without_being_asked_for():
    assert chosen(recipe('openmpi = "*"\npython = "*"')).versions["base"].startswith("debian:")
    said = conflict(recipe('openmpi = "*"\npython = "3.8"'))
    assert said.constraints == ('python = "3.8"',)


def test_every_reason_names_who_asked_and_what_kept_newer_ones_out():
    why = {c.component: c.why for c in chosen(load("tf2.15-cpu").recipe).chosen}
    assert why["tensorflow"] == "the recipe wants 2.15.*; the newest version that fits"
    assert why["python"].startswith(
        "debian:bookworm has it; not 3.13, as tensorflow 2.15.1 works only with python 3.9"
    )
    assert why["openmpi"] == (
        "no cluster is given, so every version fits; "
        "not 5.0.7, as openmpi 5.0.7 works only with debian:trixie"
    )
    assert why["pmix"].startswith("openmpi 4.1.4 needs it")


def test_a_recorded_cluster_with_pmix_5_is_served_by_srun():
    for name in ("tf2.15-cpu", "tf2.18-cpu", "tf2.15-ompi5-cpu", "tf2.15-ompi-source-cpu", "mpi-only"):
        wanted = load(name).recipe
        solution = chosen(wanted, RECORDED)
        assert solution.mode == "srun-pmix" == mode_of(solution, RECORDED, wanted.operations)
        assert solution.of("openmpi").why
    solution = chosen(load("tf2.15-mpich-cpu").recipe, RECORDED)
    assert solution.mode == "srun-pmi2" == mode_of(solution, RECORDED)


def test_without_a_plugin_for_pmix_another_open_mpi_is_taken_or_the_reason_told():
    wanted = load("tf2.15-cpu").recipe
    solution = chosen(wanted, SERVING_PMI2)
    assert solution.mode == mode_of(solution, SERVING_PMI2)
    # Only an Open MPI that is compiled with PMI-2 starts with srun here, and Debian's Open MPI lacks PMI-2.
    assert (solution.mode, solution.of("openmpi").provider) == ("srun-pmi2", "source")
    assert solution.of("openmpi").why == (
        "srun-pmi2 works with it on this cluster; not 4.1.4 from debian, as srun-pmi2 would not work with it"
    )
    # With Debian's Open MPI, only the launcher inside the container works.
    pinned = recipe('openmpi = "match-host"', tail='[mpi]\nprovider = "debian"')
    assert chosen(pinned, SERVING_PMI2).mode == "mpirun-container"


@every_row("cluster", [RECORDED, SERVING_PMI2])
def test_the_default_recipe_is_started_by_srun_with_pmix_and_without(cluster):
    solution = chosen(load(str(DEFAULTS.image)).recipe, cluster)
    wanted = ("srun-pmix", "5.0.7") if cluster is RECORDED else ("srun-pmi2", "4.1.4")
    assert (solution.mode, solution.versions["openmpi"]) == wanted
    assert solution.mode == mode_of(solution, cluster)


def test_where_no_way_is_left_the_cluster_is_told_among_what_was_wanted():
    pinned = recipe('mpich = "match-host"', tail='[mpi]\nprovider = "debian"')
    said = conflict(pinned, SERVING_NONE)
    assert said.constraints[0] == 'mpich = "match-host"'
    assert said.constraints[-1] == "the cluster (cluster demo)"
    assert any(fact.startswith("srun-pmi2: ") for fact in said.because)


def test_a_host_with_mpich_alone_starts_mpich():
    solution = chosen(load("tf2.15-mpich-cpu").recipe, MPICH_ONLY)
    assert solution.mode == "srun-pmi2" == mode_of(solution, MPICH_ONLY)


def test_where_srun_serves_nothing_the_launcher_inside_is_left_and_gloo():
    solution = chosen(load("tf2.15-cpu").recipe, SERVING_NONE)
    assert solution.mode == "mpirun-container" == mode_of(solution, SERVING_NONE)
    solution = chosen(load("tf2.15-mpich-cpu").recipe, SERVING_NONE)
    assert solution.mode == "gloo" == mode_of(solution, SERVING_NONE)


def test_a_better_way_of_launching_goes_before_a_newer_version():
    wanted = recipe('openmpi = "match-host"\nmpi4py = "*"')
    assert chosen(wanted).versions["openmpi"] == "5.0.7"
    # Open MPI 5 supports only PMIx.
    assert chosen(wanted, SERVING_PMI2).versions["openmpi"] == "4.1.4"


def test_a_driver_that_is_too_old_is_the_reason_and_nothing_else():
    old = with_(HOST, gpu_driver="418.39", absent={})
    said = conflict(load("tf2.14-cuda11.8").recipe, old)
    assert any("cuda 11.8 needs driver 450.80.02; the host has 418.39" in fact for fact in said.because)
    assert len(said.constraints) == len(said.relax)
    new = with_(HOST, gpu_driver="535.54.03", absent={})
    assert chosen(load("tf2.14-cuda11.8").recipe, new).mode == "srun-pmix"


def test_another_processor_is_told():
    said = conflict(load("mpi-only").recipe, with_(HOST, architecture="ppc64le"))
    assert said.constraints == (
        'openmpi = "match-host"',
        'architecture = "x86_64"',
        "the cluster (cluster demo)",
    )
    assert any("the image was built for x86_64; the host has ppc64le" in fact for fact in said.because)


def test_a_cluster_of_which_too_little_is_known_is_not_guessed():
    said = conflict(load("mpi-only").recipe, without(with_(HOST, mpis=()), "runtime"))
    assert said.constraints[-1] == "the cluster (cluster demo)"


def test_a_contradiction_names_the_facts_between_its_lines_and_what_each_would_give():
    said = conflict(recipe('tensorflow = "2.15.*"\nhorovod = "*"\nopenmpi = "*"\npython = "3.13"'))
    assert said.constraints == ('tensorflow = "2.15.*"', 'python = "3.13"')
    assert said.because == ("tensorflow 2.15.1 and 2.15.0 work only with python 3.9, 3.10 or 3.11",)
    without_bound, without_python = said.relax
    assert "tensorflow 2.21.0, keras 2.21.0, horovod 0.28.1 on debian:trixie" in without_bound
    assert "tensorflow 2.15.1, horovod 0.28.1 on debian:bookworm" in without_python


def test_an_image_has_a_horovod_for_one_framework():
    said = conflict(recipe('tensorflow = "*"\ntorch = "*"\nhorovod = "*"\nopenmpi = "*"'))
    assert said.constraints == ('tensorflow = "*"', 'torch = "*"', 'horovod = "*"')
    assert "horovod 0.28.1 from pypi cannot be combined with torch" in said.because


def test_horovod_is_compiled_for_the_framework_that_is_there():
    for framework in ("tensorflow", "torch"):
        found = chosen(recipe(f'{framework} = "*"\nhorovod = "*"\nopenmpi = "*"'))
        assert {"tensorflow", "torch"} & set(found.versions) == {framework}


def test_facts_that_several_rows_share_are_told_once():
    said = conflict(recipe('tensorflow = "2.14.*"\nopenmpi = "*"', head='base = "debian:trixie"'))
    assert "tensorflow 2.14.1 and 2.14.0 work only with python 3.9, 3.10 or 3.11" in said.because
    assert "debian:trixie works only with python 3.13" in said.because


def test_what_dropping_one_line_does_not_mend_is_told_with_what_is_left():
    wanted = recipe(
        'tensorflow = "2.15.*"\npython = "3.13"\nopenmpi = "5.*"\npmix = "4.*"',
        head='architecture = "x86_64"',
    )
    assert all(
        "still no solution, because these contradict each other: " in line for line in conflict(wanted).relax
    )


@every_row("component", [c for c in components() if c not in ("base", "python")])
def test_every_row_can_be_read_and_names_what_there_is(component):
    names = [base.name for base in stacks().base]
    for row in stacks().rows(component):
        assert row.source
        for other, wish in {**row.requires, **row.fits}.items():
            for one in [wish] if isinstance(wish, str) else wish:
                if other == "base":
                    assert any(one == name or one.endswith("*") for name in names), one
                else:
                    assert is_wish(one.split(" ")[-1]), one
        if component in FACES:
            assert row.speaks, f"{component} {row.version}: what an inspector would find is not told"


@every_row("component", components())
def test_every_row_can_be_had_with_some_stack(component):
    for row in stacks().rows(component):
        if component in ("base", "python"):
            continue
        provider = row.provider if component in FACES and row.provider != "published" else ""
        bases = row.requires.get("base", "")
        base = bases if isinstance(bases, str) else bases[0]
        want = {component: row.version}
        if not set(FACES) & set(want):
            needs = set(row.requires) & set(FACES)
            want[needs.pop() if needs else "openmpi"] = "*"
        want |= {name: "*" for name in ("cuda", "rocm") if name in row.requires}
        lines = "\n".join(f'{name} = "{wish}"' for name, wish in want.items())
        head = (f'base = "{base}"\n' if base else "") + (
            f'architecture = "{row.architectures[0]}"' if row.architectures else ""
        )
        chosen(recipe(lines, head=head, tail=f'[mpi]\nprovider = "{provider}"'))


def test_a_component_that_a_version_needs_and_the_recipe_leaves_out_is_the_reason():
    said = conflict(recipe('torch = "2.15.*"\nopenmpi = "*"'))
    assert said.because == ("torch 2.15.0 needs cuda, which the recipe does not name",)
    assert chosen(recipe('torch = "2.15.*"\ncuda = "*"\nopenmpi = "*"')).versions["cuda"] == "13.2"
    chosen_torch = chosen(recipe('torch = "*"\nopenmpi = "*"')).of("torch")
    assert chosen_torch.version == "2.13.0"
    assert "needs cuda, which the recipe does not name" in chosen_torch.why


def test_a_base_that_waits_to_be_asked_for_is_not_told_as_missing():
    said = conflict(recipe('torch = "2.13.*"\ntensorflow = "*"\nhorovod = "*"\nopenmpi = "*"'))
    assert said.because
    assert not any("needs base" in fact for fact in said.because)


def test_a_refusal_for_another_processor_says_what_the_index_has():
    wanted = recipe('tensorflow = "2.21.*"\ncuda = "*"\nopenmpi = "*"', head='architecture = "aarch64"')
    assert any(
        "PyPI's wheels of TensorFlow for aarch64 support only CPUs" in f for f in conflict(wanted).because
    )
