"""Test the flavours, which are the kinds of virtual clusters, and their effect on a cluster's settings."""

import pytest

from tests.unit.tables import every_row
from toolkit.cluster import flavour, image
from toolkit.cluster.access import new_secrets
from toolkit.cluster.files import settings
from toolkit.cluster.plan import FLAVOUR, Layout
from toolkit.cluster.virtual import _flavour
from toolkit.errors import BadInput
from toolkit.run.docker.nodes import NodeContainer

GIB = 1 << 30
SECRETS = new_secrets()


def configured(name, file):
    return settings(Layout("demo", 2, 2, GIB, name), SECRETS)[f"/etc/slurm/{file}"].decode().splitlines()


def test_the_first_flavour_is_what_nobody_asks_for():
    assert flavour.default_flavour() == "pmix"
    assert Layout("demo", 1, 1, GIB).flavour == "pmix"
    assert image.node_image("pmix") == "toolkit-node:latest"


def test_there_is_one_without_pmix_one_without_mpi_and_one_with_another_mpi():
    known = flavour.flavours().values()
    assert {f.mpi_default for f in known} == {"pmix", "pmi2", "none"}
    assert [f for f in known if not f.pmix_plugin]
    assert [f for f in known if not f.packages]
    assert [f for f in known if "mpich" in f.packages]
    assert len({f.release for f in known}) > 1


@every_row("name", flavour.flavours())
def test_slurm_is_configured_as_the_flavour_says(name):
    assert f"MpiDefault={flavour.flavours()[name].mpi_default}" in configured(name, "slurm.conf")
    assert f"CgroupPlugin={flavour.flavours()[name].cgroup_plugin}" in configured(name, "cgroup.conf")


def test_every_flavour_has_an_image_of_its_own():
    names = [image.node_image(name) for name in flavour.flavours()]
    arguments = [str(sorted(image.arguments(name).items())) for name in flavour.flavours()]
    assert len(set(names)) == len(set(arguments)) == len(flavour.flavours())


def test_arguments_of_a_flavour_are_declared_in_the_dockerfile():
    written = image.context()["Dockerfile"].decode()
    for argument in image.arguments("bare"):
        assert f"ARG {argument}=" in written
    assert image.arguments("bare") == {"PACKAGES": "", "PMIX_PLUGIN": "no"}


def test_the_default_flavour_is_what_the_dockerfile_builds_unasked():
    written = image.context()["Dockerfile"].decode()
    assert f'ARG PACKAGES="{image.arguments("pmix")["PACKAGES"]}"' in written


def test_an_unknown_flavour_is_answered_with_those_that_there_are():
    with pytest.raises(BadInput, match="flavour 'cray': not found") as caught:
        flavour.check_flavour("cray")
    assert "bare: Slurm without its PMIx plugin" in caught.value.fix


def test_a_damaged_file_says_so(monkeypatch, tmp_path):
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / flavour.FILE).write_text('[x]\ntitle = "a"\n')
    monkeypatch.setattr(flavour, "shipped_folder", lambda kind: tmp_path)
    flavour.flavours.cache_clear()
    try:
        with pytest.raises(BadInput, match=r"flavours\.toml"):
            flavour.flavours()
    finally:
        flavour.flavours.cache_clear()


def test_a_cluster_remembers_its_flavour_and_an_earlier_one_has_the_default():
    def found(labels):
        return {"x": NodeContainer(name="x", state="running", labels=labels, ports={})}

    assert Layout("demo", 1, 1, GIB, "bare").labels[FLAVOUR] == "bare"
    assert _flavour(found({FLAVOUR: "bare"})) == "bare"
    assert _flavour(found({})) == "pmix"
    assert _flavour({}) is None
