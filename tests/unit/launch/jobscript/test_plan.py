import msgspec
import pytest

from tests.unit.launch.examples import BIND, CARRIED, CONTAINED, GLOO, MPIRUN, SPEC, SRUN, spec
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.launch.jobscript import plan as planning
from toolkit.model.facts import ContainerRuntime, HostFacts
from toolkit.runtime.apptainer import bind


def launch_words(what, plan, *more):
    plan = msgspec.structs.replace(plan, binds=(*plan.binds, *what.binds))
    return [word for group in planning.launch_words(what, plan, *more) for word in group]


def test_srun_starts_the_container_once_a_rank():
    words = launch_words(SPEC, SRUN, ("true",))
    assert words[:7] == [
        "srun",
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--kill-on-bad-exit=1",
        "--label",
        "--mpi=pmix",
    ]
    assert words[7:10] == ["env", "-u", "OMPI_MCA_btl"]
    assert words[10:12] == ["singularity", "exec"]
    assert words[-4:] == [SPEC.image, "env", "A=1 2", "true"]


def test_host_launcher_starts_containers_and_what_it_leaks_is_dropped_after_it():
    words = launch_words(SPEC, MPIRUN, ("true",))
    assert words[:5] == ["mpirun", "-n", "2", "--map-by", "ppr:1:node"]
    assert words[5:10] == ["env", "-u", "OPAL_PREFIX", "singularity", "exec"]


def test_contained_launcher_runs_inside_the_image():
    words = launch_words(spec(nodes=1, ranks_per_node=2), CONTAINED, ("true",))
    assert words[:2] == ["singularity", "exec"]
    assert words[words.index(SPEC.image) + 1 :] == ["mpirun", "-n", "2", "true"]


def test_without_mpi_a_wrapper_stands_before_the_command_and_behind_its_variables():
    words = launch_words(SPEC, GLOO, ("true",))
    assert words[words.index(SPEC.image) + 1 :] == [
        "env",
        "HOROVOD_CONTROLLER=gloo",
        "HOROVOD_CPU_OPERATIONS=gloo",
        *("python", "-m", "toolkit.trainers.gloo", "--"),
        "true",
    ]
    assert planning.gloo_file(SPEC, GLOO) is None


def test_a_wrapper_that_is_brought_is_named_by_its_full_path():
    words = launch_words(SPEC, CARRIED, ("true",))
    assert words[-4:] == ["python3", f"{SPEC.directory}/toolkit-gloo.py", "--", "true"]


def test_what_is_bound_is_mounted_and_its_variables_are_set_inside():
    words = launch_words(SPEC, BIND, ("true",))
    image = words.index(SPEC.image)
    assert words[image - 6 : image - 2] == ["--bind", "/opt/ompi", "--bind", "/opt/ucx/lib"]
    assert words[image + 1 :] == [
        "env",
        "LD_LIBRARY_PATH=/opt/ompi/lib:/opt/ucx/lib",
        "OPAL_PREFIX=/opt/ompi",
        "true",
    ]


def test_a_persons_variable_wins_over_the_plans():
    words = launch_words(spec(env={"A": "mine"}), SRUN, ("true",))
    assert words[-3:] == ["sh", f"{SPEC.directory}/variables.sh", "true"]
    assert not any(word.startswith("A=") for word in words)


def test_the_same_bind_is_given_once():
    words = launch_words(spec(binds=("/data", "/data")), SRUN, ("true",))
    assert words.count("/data") == 1


@every_row("name", ["", "A B", "1A", "A-B", "Ä", "A;rm"])
def test_a_name_that_is_no_variable_is_refused(name):
    with pytest.raises(BadInput, match="not a valid variable name"):
        launch_words(spec(env={name: "1"}), SRUN, ("true",))


def test_bind_of_a_path_that_singularity_would_split_is_refused():
    for path in ("/a,b", "/a:b", "/a\nb"):
        with pytest.raises(BadInput, match="option --bind cannot contain"):
            bind(path)


@every_row(
    ("path", "name"),
    [("/usr/bin/apptainer", "apptainer"), ("/opt/sw/bin/singularity", "singularity"), ("", "singularity")],
)
def test_the_runtime_is_called_as_it_was_found(path, name):
    runtime = ContainerRuntime(name="apptainer", version="1.4", path=path)
    assert planning.runtime_of(HostFacts(place="here", runtime=runtime)) == name
    assert planning.runtime_of(HostFacts(place="here")) == "singularity"
    assert name in launch_words(SPEC, SRUN, ("true",), name)


def test_bind_read_only_names_the_target_too():
    assert bind("/data", read_only=True) == "/data:/data:ro"
    assert bind("/data") == "/data"
    assert bind("/data", "/in") == "/data:/in"
