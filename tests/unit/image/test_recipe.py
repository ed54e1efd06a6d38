"""Test that toolkit refuses a wrong recipe with one line that names file, line, field and choices."""

import pytest

from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.engine.solver.solve import solve
from toolkit.errors import BadInput
from toolkit.image.locks.recipe import load, names, parse, recipe_sha256
from toolkit.knowledge.stacks import stacks

GOOD = (shipped_folder("recipes") / "tf2.15-cpu.toml").read_text()


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        parse(text, "r.toml", stacks())
    assert "\n" not in caught.value.message
    return caught.value.message


def line_with(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


@every_row("name", names())
def test_every_shipped_recipe_can_be_read(name):
    assert load(name).tag == f"toolkit/{name}:latest"


def test_the_first_recipe_asks_for_what_a_person_would():
    recipe = load("tf2.15-cpu").recipe
    assert recipe.want == {"tensorflow": "2.15.*", "horovod": "*", "openmpi": "match-host", "mpi4py": "*"}
    assert (recipe.base, recipe.architecture) == ("", "x86_64")
    assert recipe.operations == ("mpi", "gloo")


def test_an_unknown_field_is_named_with_its_line_and_the_nearest_that_exists():
    text = GOOD.replace("operations =", "operatoins =")
    line = line_with(text, "operatoins")
    assert refusal(text) == (
        f"r.toml:{line}: horovod.operatoins: unknown field (did you mean operations?); choices: operations"
    )


def test_an_unknown_field_at_the_top_is_found_too():
    said = refusal(GOOD.replace("title =", "titel =", 1))
    line = line_with(GOOD, "title =")
    assert said.startswith(f"r.toml:{line}: titel: unknown field (did you mean title?); choices: ")


def test_an_unknown_component_is_named_with_the_nearest_that_exists():
    said = refusal(GOOD.replace("tensorflow =", "tensrflow ="))
    line = line_with(GOOD, "tensorflow =")
    begin = f"r.toml:{line}: want.tensrflow: unknown component (did you mean tensorflow?); choices: "
    assert said.startswith(begin)


def test_a_field_that_resembles_none_gets_the_choices_without_a_guess():
    assert "did you mean" not in refusal(GOOD.replace("operations =", "xyz ="))


@every_row(
    ("was", "becomes", "field", "choices"),
    [
        ('tensorflow = "2.15.*"', 'tensorflow = "match-host"', "want.tensorflow", "openmpi, mpich, cuda"),
        ('mpi4py = "*"', 'mpich = "*"', "want.mpich", "openmpi, mpich"),
        ('"mpi", "gloo"', '"mpi", "ccl"', "horovod.operations[1]", "mpi, gloo, nccl"),
        ('"mpi", "gloo"', "", "horovod.operations", "mpi, gloo, nccl"),
        ('"toolkit.recipe/2"', '"toolkit.recipe/1"', "schema", "toolkit.recipe/2"),
        ('"toolkit.recipe/2"', '"toolkit.recipe/9"', "schema", "toolkit.recipe/2"),
    ],
)
def test_an_impossible_value_is_told_with_what_is_possible(was, becomes, field, choices):
    said = refusal(GOOD.replace(was, becomes, 1))
    line = line_with(GOOD, was)
    assert said.startswith(f"r.toml:{line}: {field}: ")
    assert said.endswith(f"; choices: {choices}")


@every_row(("field", "value"), [("base", "debian:warty"), ("architecture", "vax")])
def test_a_base_and_an_architecture_have_to_be_known(field, value):
    said = refusal(GOOD.replace("title =", f'{field} = "{value}"\ntitle =', 1))
    assert f": {field}: unknown " in said
    assert "; choices: " in said


def test_what_is_built_against_an_mpi_needs_one():
    without = GOOD.replace("openmpi =", "ucx =").replace("match-host", "*")
    assert refusal(without).endswith("want: mpi4py needs an MPI; choices: openmpi, mpich")
    without = without.replace('mpi4py = "*"\n', "")
    assert refusal(without).endswith("want: Horovod over MPI needs an MPI; choices: openmpi, mpich")
    assert parse(without.replace('"mpi", "gloo"', '"gloo"'), "r.toml", stacks()).want["horovod"] == "*"


def test_an_image_of_pytorch_or_jax_needs_no_mpi():
    text = 'schema = "toolkit.recipe/2"\ntitle = "t"\n[want]\n'
    for name in ("torch", "jax"):
        found = solve(parse(f'{text}{name} = "*"\n', "r.toml", stacks()), "r", stacks())
        assert found.versions.keys() == {"base", "python", name}


@every_row(
    "index", ["http://wheels.example/simple", "https://ada:secret@wheels.example/simple", "wheels.example"]
)
def test_an_index_is_an_https_address_without_a_login(index):
    said = refusal(GOOD.replace("title =", f'indexes = ["{index}"]\ntitle =', 1))
    assert "is not valid; write an https address without a user name" in said
    assert "secret" not in said.partition(": ")[2]


@every_row("wish", ["", "latest", "2.15.x", ">=", "=>2", ">=2.15,", "~=2.15", "2.*.1", "*.1"])
def test_what_is_no_constraint_is_refused(wish):
    said = refusal(GOOD.replace("2.15.*", wish))
    assert (
        f"want.tensorflow: {wish!r} is not a constraint; write '*', '2.15.*', '>=4.1,<5' or a version" in said
    )


@every_row("wish", ["*", "2", "2.*", "2.15.1", ">=2.15", ">=2.15,<2.19", "==2.15.0", "<3, >2"])
def test_what_is_a_constraint_is_taken(wish):
    assert parse(GOOD.replace("2.15.*", wish), "r.toml").want["tensorflow"] == wish


def test_a_version_that_is_a_number_is_refused_because_it_would_lose_its_zeros():
    said = refusal(GOOD.replace('"2.15.*"', "2.10"))
    assert said.endswith("want.tensorflow: expected 'str', got 'float'")


def test_the_hash_of_a_recipe_is_of_its_values():
    recipe = load("tf2.15-cpu").recipe
    moved = parse(
        "# another comment\n" + GOOD.replace('mpi4py = "*"\n', "").replace("[want]", '[want]\nmpi4py = "*"'),
        "r.toml",
    )
    assert recipe_sha256(recipe) == recipe_sha256(moved)
    assert recipe_sha256(recipe) != recipe_sha256(parse(GOOD.replace("2.15.*", "2.15.0"), "r.toml"))


def test_a_required_field_that_is_not_there_is_named():
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith("title"))
    assert refusal(text) == "r.toml:1: title: this field is required"


@every_row("package", ["numpy", "numpy>=1", "numpy==1; rm -rf /", "--index-url==x", "a==1 b==2"])
def test_a_package_that_is_not_pinned_is_refused(package):
    text = GOOD.replace("title =", f'packages = ["{package}"]\ntitle =')
    assert f"packages: {package!r} is not pinned; write NAME==VERSION" in refusal(text)


def test_a_pinned_package_is_taken():
    text = GOOD.replace("title =", 'packages = ["h5py[x]==3.10.0"]\ntitle =')
    assert parse(text, "r.toml").packages == ("h5py[x]==3.10.0",)


def test_what_is_not_toml_is_told_with_its_line():
    assert refusal('schema = "a"\nbase = = 3\n').startswith("r.toml:2: this is not TOML: ")
    assert refusal('schema = "a').startswith("r.toml:1: this is not TOML: ")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    file = tmp_path / "r.toml"
    file.write_bytes(b"title = \xff")
    with pytest.raises(BadInput, match="the byte at offset 8 is not UTF-8"):
        load(str(file))


def test_a_name_that_no_image_can_have_is_refused(tmp_path):
    file = tmp_path / "My Recipe.toml"
    file.write_text(GOOD)
    with pytest.raises(BadInput, match="is not a valid name for a recipe"):
        load(str(file))


def test_an_unknown_recipe_lists_those_that_there_are():
    with pytest.raises(BadInput, match=r"recipe 'nope': not found; choices: .*tf2\.15-cpu"):
        load("nope")
