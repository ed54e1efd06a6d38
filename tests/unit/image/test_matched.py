"""Test that toolkit can build the recipe that it finds for an image and a host, and predicts success."""

from tests.unit.engine.examples import HOST, IMAGE, MPICH, image_with, with_, without
from tests.unit.tables import every_row
from toolkit.engine.solver.solve import solve
from toolkit.image.locks.match_recipe import match_recipe
from toolkit.image.locks.recipe import objections
from toolkit.knowledge.stacks import stacks
from toolkit.model.facts import ImageProgram
from toolkit.model.prediction import Request
from toolkit.model.solution import Solution

TWO = Request()


def test_a_recipe_that_can_be_built_where_slurm_serves_pmix():
    recipe = match_recipe(HOST, image_with(MPICH), TWO)
    assert recipe
    assert list(objections(recipe, stacks())) == []
    assert isinstance(solve(recipe, "matched", stacks()), Solution)
    assert "tensorflow" not in recipe.want


def test_what_the_image_is_used_for_is_kept():
    image = with_(IMAGE, tensorflow="2.15.0", horovod="0.28.1", mpi4py="3.1.4")
    recipe = match_recipe(HOST, image, TWO)
    assert recipe
    assert list(objections(recipe, stacks())) == []
    assert recipe.want["tensorflow"] == "2.15.0"
    assert recipe.want["horovod"] == "0.28.1"
    # No row has the image's version of mpi4py, so the recipe has the newest version.
    assert recipe.want["mpi4py"] == "4.1.1"


def test_a_tensorflow_that_cannot_be_built_is_replaced_by_one_that_can():
    recipe = match_recipe(HOST, with_(IMAGE, tensorflow="2.9.1", horovod="0.24.0"), TWO)
    assert recipe
    assert list(objections(recipe, stacks())) == []
    assert "horovod" in recipe.want


@every_row(
    "framework", [{"pytorch": "2.9.1"}, {"jax": "0.7.0"}, {"pytorch": "1.4.0", "tensorflow": "2.15.0"}]
)
def test_a_recipe_keeps_every_framework_of_the_image(framework):
    recipe = match_recipe(HOST, with_(IMAGE, **framework), TWO)
    wanted = {name.replace("pytorch", "torch") for name in framework}
    assert recipe and wanted <= set(recipe.want)


def test_a_host_without_slurm_has_no_recipe_for_a_program_without_mpi():
    image = with_(IMAGE, pytorch="2.11.0", program=ImageProgram(command=("python3", "ddp.py")))
    assert match_recipe(without(HOST, "slurm"), image, Request(nodes=1, program="torch")) is None


def test_one_with_its_own_launcher_where_srun_serves_nothing():
    bare = with_(HOST, slurm=with_(HOST.slurm, mpi_types=("none",), mpi_default="none"), mpis=())
    recipe = match_recipe(bare, IMAGE, TWO)
    assert recipe
    assert "openmpi" in recipe.want


def test_none_where_no_image_of_ours_would_work():
    assert match_recipe(without(HOST, "runtime"), IMAGE, TWO) is None


def test_the_mode_that_was_asked_for_does_not_bind_another_image():
    assert match_recipe(HOST, IMAGE, Request(mode="srun-pmi2"))


def test_no_framework_of_the_image_is_dropped():
    recipe = match_recipe(HOST, with_(image_with(MPICH), pytorch="1.0.0", horovod=None), TWO)
    assert recipe is None or "torch" in recipe.want
    recipe = match_recipe(HOST, with_(image_with(MPICH), tensorflow="2.9.1", mpi4py="1.0"), TWO)
    assert recipe
    assert "tensorflow" in recipe.want


def test_another_image_helps_no_program_without_mpi():
    torch = with_(IMAGE, pytorch="2.13.0")
    for asked in (Request(joins=frozenset({"torch"})), Request(program="jax")):
        assert match_recipe(HOST, torch, asked) is None
