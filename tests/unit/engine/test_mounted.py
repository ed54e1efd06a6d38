"""Test launches that mount the host's MPI into the container: launch mode ``bind``, or variables of an
environment module.
"""

import msgspec

from tests.unit.engine.whole import LAUNCHER, MPICH, RUNTIME, SLURM, absent, host, image
from tests.unit.tables import every_row
from toolkit.engine.planning.module_mounts import add_module_mounts
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict_plan
from toolkit.engine.traits import mounted_mpi
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Plan, Request

FOLDER = "/opt/cray/pe/mpich/8.1.29/ofi/gnu/9.1"
CRAY = msgspec.structs.replace(
    LAUNCHER,
    implementation="cray",
    version="8.1.29",
    launcher="",
    pmix=None,
    prefix=FOLDER,
    library=f"{FOLDER}/lib-abi-mpich/libmpi.so.12",
    soname="libmpi.so.12",
    interfaces=("pmi2",),
    device="ch4:ofi",
    needs=("libpmi2.so.0",),
    places={"libpmi2.so.0": "/opt/cray/pe/lib64"},
    folders=(f"{FOLDER}/lib-abi-mpich", "/opt/cray/pe/lib64"),
    outside=("libpmi2.so.0",),
    glibc_needed="2.17",
    plugins=None,
    leaks=None,
)
ABI = msgspec.structs.replace(
    MPICH, soname="libmpi.so.12", library="/usr/lib/libmpi.so.12.1.11", device="ch3:nemesis"
)
SHASTA = msgspec.structs.replace(SLURM, mpi_types=("none", "pmi2", "cray_shasta"), mpi_default="cray_shasta")
REQUEST = Request(nodes=2, ranks_per_node=2)


def cray(**changes: object) -> HostFacts:
    """Return the facts of a Cray whose MPICH is in Cray's own folder and has no mpirun."""
    there = {"mpis": (), "folder_mpis": (CRAY,), "slurm": SHASTA, "runtime": setuid(), **changes}
    return absent(host(**there), "pmix")


def setuid():
    return msgspec.structs.replace(RUNTIME, setuid=True)


def of(name: str) -> ImageFacts:
    if name == "none":
        return absent(image(libraries=("libz.so.1",), programs={}), "mpi", "pmix")
    release = {"mpich": "3.4.3", "intelmpi": "2021.9", "mvapich2": "2.3.7"}[name]
    return absent(image(mpi=msgspec.structs.replace(ABI, implementation=name, version=release)), "pmix")


@every_row("name", ["mpich", "intelmpi", "mvapich2", "none"])
def test_cray_mpich_is_mounted_over_any_mpi_of_its_abi_and_into_an_image_without_one(name):
    made = plan(cray(), of(name), REQUEST, "bind")
    assert made.launcher[:2] == ("srun", "--mpi=cray_shasta")
    assert {FOLDER, "/opt/cray/pe/lib64", "/var/spool/slurmd"} <= set(made.binds)
    said = predict_plan(cray(), of(name), REQUEST, made)
    assert (said.outcome, said.basis) == ("ok", "beyond"), said.because
    assert "Cray MPICH 8.1.29" in said.why


def test_another_abi_is_not_replaced():
    other = absent(image(mpi=msgspec.structs.replace(ABI, soname="libmpi_abi.so.0")), "pmix")
    made = plan(cray(), other, REQUEST, "bind")
    assert "bind-has-no-effect" in predict_plan(cray(), other, REQUEST, made).findings


def test_the_standard_abi_is_mounted_if_the_host_has_a_library_of_that_name():
    standard = msgspec.structs.replace(
        CRAY, soname="libmpi_abi.so.0", library=f"{FOLDER}/lib/libmpi_abi.so.0"
    )
    both = cray(folder_mpis=(CRAY, standard))
    inside = absent(image(mpi=msgspec.structs.replace(ABI, soname="libmpi_abi.so.0")), "pmix")
    assert mounted_mpi(both, inside) == standard


def test_a_host_without_any_mpi_mounts_none():
    nothing = cray(folder_mpis=())
    said = predict_plan(nothing, of("mpich"), REQUEST, plan(nothing, of("mpich"), REQUEST, "bind"))
    assert said.outcome == "unavailable"
    assert "no MPI is in Cray's folders or in folders that environment modules name" in said.because


def test_the_hosts_own_mpirun_starts_the_ranks_if_srun_serves_nothing():
    own = msgspec.structs.replace(
        CRAY, implementation="mpich", version="4.1.3", launcher="/opt/mpich/bin/mpirun", prefix="/opt/mpich",
        library="/opt/mpich/lib/libmpi.so.12", interfaces=("pmi1",), needs=(), places={}, outside=(),
        folders=("/opt/mpich/lib",),
    )  # fmt: skip
    bare = cray(
        mpis=(own,),
        folder_mpis=(),
        slurm=msgspec.structs.replace(SHASTA, mpi_types=("none",), mpi_default="none"),
    )
    made = plan(bare, of("mpich"), REQUEST, "bind")
    assert made.launcher[0] == "mpirun"
    assert predict_plan(bare, of("mpich"), REQUEST, made).outcome == "ok"


IN_OPT = msgspec.structs.replace(
    LAUNCHER,
    prefix="/opt/mpi",
    library="/opt/mpi/lib/libmpi.so.40",
    folders=("/opt/mpi/lib",),
    glibc_needed="2.17",
    leaks=(),
    outside=(),
    plugins=None,
)


@every_row(("own", "launcher"), [(CRAY, "mpiexec"), (IN_OPT, "mpirun")])
def test_without_slurm_the_mounted_mpi_is_started_by_its_own_launcher(own, launcher):
    at_pbs = absent(cray(mpis=(own,), folder_mpis=(), schedulers=("pbs",)), "slurm")
    inside = of("mpich") if own is CRAY else image()
    made = plan(at_pbs, inside, REQUEST, "bind")
    assert made.launcher == (launcher,)
    said = predict_plan(at_pbs, inside, REQUEST, made)
    assert said.outcome == "ok", said.because
    assert f"{launcher} supports this MPI" in said.why


BINDS = {
    "APPTAINER_BIND": "/opt/cray,/var/spool",
    "APPTAINERENV_LD_LIBRARY_PATH": f"{FOLDER}/lib-abi-mpich:/opt/cray/pe/lib64",
}
TYPED = Plan(mode="srun-pmi2", launcher=("srun", "--mpi=pmi2"))


def test_variables_of_a_module_mount_the_hosts_mpi_in_any_mode():
    loaded = cray(environment=BINDS)
    assert add_module_mounts(loaded, of("mpich"), TYPED) is not None
    said = predict_plan(loaded, of("mpich"), REQUEST, TYPED)
    assert said.outcome == "ok"
    assert predict_plan(loaded, of("none"), REQUEST, TYPED).outcome == "ok"


def test_an_mpi_that_no_fact_describes_leaves_the_outcome_unknown():
    unread = msgspec.structs.replace(cray(environment=BINDS), folder_mpis=None)
    said = predict_plan(unread, of("mpich"), REQUEST, TYPED)
    assert said.outcome == "unknown"
    assert "host.folder_mpis" in said.because


@every_row("environment", [
    {},
    {"APPTAINER_BIND": "/opt/cray"},
    {"APPTAINERENV_LD_LIBRARY_PATH": f"{FOLDER}/lib-abi-mpich"},
    {"APPTAINER_BIND": "/scratch", "APPTAINERENV_LD_LIBRARY_PATH": "/scratch/lib"},
])  # fmt: skip
def test_other_variables_leave_the_images_own_mpi(environment):
    assert add_module_mounts(cray(environment=environment), of("mpich"), TYPED) is None


def test_toolkits_own_plan_keeps_the_variables_and_judges_them():
    loaded = cray(environment=BINDS)
    made = plan(loaded, of("mpich"), REQUEST, "srun-pmi2")
    assert not set(BINDS) & set(made.unset)
    assert add_module_mounts(loaded, of("mpich"), made) is not None
