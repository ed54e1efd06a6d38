"""Test that the usual facts of clusters, and the usual learning rates, agree with the other tables."""

from collections.abc import Callable

from tests.unit.knowledge.rows import ARCHITECTURES, VERSION, ascend, order, series, tables
from tests.unit.tables import every_row

USUAL, MPI, ADAPT = tables("usual"), tables("mpi"), tables("adapt")
FACTS_OF_RUNTIME = USUAL["host"]["runtime"]
RATES = {"0.001": 0.001, "0.01": 0.01, "1e-3": 0.001, "2e-3": 0.002, "1e-2": 0.01, "1.0": 1.0}
SLOWER = {"Adamax", "NAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD", "Rprop"}
"""Optimizers of PyTorch whose default learning rate is not 1e-3."""


def the_usual_mpi_of_a_mode_is_an_mpi_that_an_image_may_have() -> None:
    images = set(USUAL["image_mpis"])
    assert set(USUAL["mpi_of_mode"].values()) <= images
    assert "openmpi 4.1.6" in {f"openmpi {release}" for release in MPI["bundled_pmix"]} & images
    assert series(next(name for name in images if name.startswith("mpich")).split()[1]) == (4, 1)


def the_usual_pmix_is_a_value_of_the_question_about_pmix() -> None:
    questions = {row["fact"]: row for row in USUAL["question"]}
    assert USUAL["external_pmix"] in questions["image.pmix"]["values"]
    assert USUAL["external_pmix"] in tables("pmix")["library_file"].values()
    assert USUAL["beside"]["ucx"]["ucx"] in questions["image.ucx"]["values"]
    assert ascend(questions["host.pmix"]["values"])
    assert ascend(questions["image.pmix"]["values"])
    offered = [USUAL["host"]["slurm"]["mpi_types"], *questions["host.slurm.mpi_types"]["values"]]
    assert {kind for kinds in offered for kind in kinds} == {"none", "pmi2", "pmix", "pmix_v5"}


def the_usual_runtime_has_its_usual_release() -> None:
    assert FACTS_OF_RUNTIME["version"] == USUAL["runtime_releases"][FACTS_OF_RUNTIME["name"]]
    assert USUAL["setuid_kernel"] == tables("runtime")["fuse"]["kernel"]
    sources = {row["name"]: row["source"] for row in USUAL["setuid"]}
    for name in ("singularity", "singularity-ce"):
        assert f"at v{USUAL['runtime_releases'][name]}:" in sources[name]
    for row in (row for row in USUAL["setuid"] if "versions" in row):
        assert f"{VERSION.findall(row['versions'])[0]}.0" in row["source"]


def the_usual_host_is_a_host_that_images_fit() -> None:
    assert {USUAL["host"]["architecture"], USUAL["image"]["architecture"]} <= ARCHITECTURES
    assert USUAL["host"]["cpu_level"] in tables("glibc")["cpu"]["levels"]
    assert USUAL["host"]["shm"] == 100 << 30
    assert order(USUAL["old_kernel"]["kernel"]) <= order(USUAL["host"]["kernel"])


def the_levels_of_processors_are_in_order() -> None:
    assert tables("glibc")["cpu"]["levels"] == [f"x86-64-v{level}" for level in range(1, 5)]


def an_mpi_speaks_the_interfaces_of_its_family() -> None:
    assert USUAL["interfaces"] == {
        name: ["pmix"] if name == "openmpi" else ["pmi1", "pmi2"][: 1 + (name == "intelmpi")]
        for name in USUAL["interfaces"]
    }


def keras_optimizers_have_one_default_rate_except_sgd() -> None:
    rates = dict(ADAPT["keras"]["optimizers"].values())
    assert {name for name, rate in rates.items() if RATES[rate] != 0.001} == {"SGD"}
    assert RATES[rates["SGD"]] == 0.01
    assert all(key == name.lower() for key, (name, _) in ADAPT["keras"]["optimizers"].items())


def pytorch_optimizers_have_the_rates_of_their_families() -> None:
    rates = {name: RATES[rate] for name, rate in ADAPT["torch"]["optimizers"].items()}
    assert {name for name, rate in rates.items() if rate != 0.001} == SLOWER
    assert rates["Adamax"] == rates["NAdam"] == 0.002
    assert rates["RMSprop"] == rates["Adagrad"] == rates["ASGD"] == rates["Rprop"] == 0.01
    assert rates["Adadelta"] == 1.0


CHECKS = [
    the_usual_mpi_of_a_mode_is_an_mpi_that_an_image_may_have,
    the_usual_pmix_is_a_value_of_the_question_about_pmix,
    the_usual_runtime_has_its_usual_release,
    the_usual_host_is_a_host_that_images_fit,
    the_levels_of_processors_are_in_order,
    an_mpi_speaks_the_interfaces_of_its_family,
    keras_optimizers_have_one_default_rate_except_sgd,
    pytorch_optimizers_have_the_rates_of_their_families,
]


@every_row("check", CHECKS)
def test_usual_facts_agree_with_the_other_tables(check: Callable[[], None]):
    check()
