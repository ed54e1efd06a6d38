"""A recipe that cannot be built is refused in one line: file, line, field, choices."""

import pytest

from toolkit.data import shipped
from toolkit.errors import BadInput
from toolkit.image.recipe import load, names, parse

GOOD = (shipped("recipes") / "tf2.15-cpu.toml").read_text()


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        parse(text, "r.toml")
    assert "\n" not in caught.value.message
    return caught.value.message


def line_with(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_can_be_built(name):
    assert load(name).tag == f"toolkit/{name}:latest"


def test_the_first_recipe_asks_for_what_the_issue_names():
    recipe = load("tf2.15-cpu").recipe
    assert (recipe.base, recipe.python.version) == ("debian:bookworm", "3.11")
    assert (recipe.mpi.implementation, recipe.mpi.version) == ("openmpi", "4.1.4")
    assert recipe.tensorflow and recipe.tensorflow.version == "2.15.1"
    assert recipe.horovod and recipe.horovod.version == "0.28.1"
    assert recipe.horovod.operations == ("mpi", "gloo")


def test_an_unknown_field_is_named_with_its_line_and_the_nearest_that_exists():
    text = GOOD.replace("[horovod]\nversion", "[horovod]\nverison")
    line = line_with(text, "verison")
    assert refusal(text) == (
        f"r.toml:{line}: horovod.verison: there is no such field, did you mean version?; "
        "choices: version, operations"
    )


def test_an_unknown_field_at_the_top_is_found_too():
    said = refusal(GOOD.replace("base =", "bases =", 1))
    line = line_with(GOOD, "base =")
    assert said.startswith(f"r.toml:{line}: bases: there is no such field, did you mean base?; choices: ")


def test_a_field_that_resembles_none_gets_the_choices_without_a_guess():
    assert "did you mean" not in refusal(GOOD.replace("[horovod]\nversion", "[horovod]\nxyz"))


@pytest.mark.parametrize(
    ("was", "becomes", "field", "choices"),
    [
        ('"2.15.1"', '"2.99.0"', "tensorflow.version", "2.15.0, 2.15.1"),
        ('"0.28.1"', '"0.99.0"', "horovod.version", "0.28.1"),
        ('"4.1.4"', '"4.1.5"', "mpi.version", "4.1.4"),
        ('"4.0.3"', '"9.0.0"', "mpi4py.version", "4.0.3, 4.1.1"),
        ('"3.11"', '"3.12"', "python.version", "3.11"),
        ('"debian:bookworm"', '"ubuntu:22.04"', "base", "debian:bookworm"),
        ('"openmpi"', '"mpich"', "mpi.implementation", "openmpi"),
        ('"mpi", "gloo"', '"mpi", "nccl"', "horovod.operations[1]", "mpi, gloo"),
        ('"mpi", "gloo"', "", "horovod.operations", "mpi, gloo"),
        ('"toolkit.recipe/1"', '"toolkit.recipe/9"', "schema", "toolkit.recipe/1"),
    ],
)
def test_an_impossible_value_is_told_with_what_is_possible(was, becomes, field, choices):
    said = refusal(GOOD.replace(was, becomes, 1))
    line = line_with(GOOD, was)
    assert said.startswith(f"r.toml:{line}: {field}: ")
    assert said.endswith(f"; choices: {choices}")


def test_a_version_that_is_a_number_is_refused_because_it_would_lose_its_zeros():
    assert refusal(GOOD.replace('"3.11"', "3.10")).endswith("python.version: expected 'str', got 'float'")


def test_horovod_without_tensorflow_is_refused():
    text = GOOD.replace('[tensorflow]\nversion = "2.15.1"\n', "")
    assert "horovod: Horovod needs a [tensorflow]" in refusal(text)


def test_a_required_field_that_is_not_there_is_named():
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith("title"))
    assert refusal(text) == "r.toml:1: title: this field is required"


@pytest.mark.parametrize(
    "package", ["numpy", "numpy>=1", "numpy==1; rm -rf /", "--index-url==x", "a==1 b==2"]
)
def test_a_package_that_is_not_pinned_is_refused(package):
    text = GOOD.replace('base = "debian:bookworm"', f'base = "debian:bookworm"\npackages = ["{package}"]')
    assert f"packages: {package!r} is not pinned; write NAME==VERSION" in refusal(text)


def test_a_pinned_package_is_taken():
    text = GOOD.replace(
        'base = "debian:bookworm"', 'base = "debian:bookworm"\npackages = ["h5py[x]==3.10.0"]'
    )
    assert parse(text, "r.toml").packages == ("h5py[x]==3.10.0",)


def test_what_is_not_toml_is_told_with_its_line():
    assert refusal('schema = "a"\nbase = = 3\n').startswith("r.toml:2: this is not TOML: ")
    assert refusal('schema = "a').startswith("r.toml:1: this is not TOML: ")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    file = tmp_path / "r.toml"
    file.write_bytes(b"title = \xff")
    with pytest.raises(BadInput, match="byte 8 is not UTF-8"):
        load(str(file))


def test_a_name_that_no_image_can_have_is_refused(tmp_path):
    file = tmp_path / "My Recipe.toml"
    file.write_text(GOOD)
    with pytest.raises(BadInput, match="becomes the name of its image"):
        load(str(file))


def test_an_unknown_recipe_lists_those_that_there_are():
    with pytest.raises(BadInput, match=r"there is no 'nope'; choices: .*tf2\.15-cpu"):
        load("nope")
