"""Test that toolkit predicts success for the host's mpirun and an image with the same MPI release."""

import msgspec

from tests.unit.engine import whole
from tests.unit.tables import every_row
from toolkit import knowledge
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict_plan
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Request

OPEN_MPI = {
    "1.10.7": None,
    "2.1.6": "1.2.5",
    "3.0.4": "2.0.3",
    "3.1.6": "2.2.3",
    "4.0.3": "3.1.5",
    "4.1.4": "3.2.3",
    "4.1.8": "3.2.5",
    "5.0.3": "5.0.2",
    "5.0.7": "5.0.7",
    "5.0.10": "5.0.10",
}
"""The PMIx release inside each release of Open MPI."""
OTHERS = {
    "mpich": (
        "3.1.4",
        "3.2",
        "3.3.2",
        "3.4.3",
        "4.0.2",
        "4.1.3",
        "4.2.0",
        "4.3.2",
        "5.0.0",
        "5.0.1",
        "5.0.2",
    ),
    "intelmpi": ("2018.3", "2019.4", "2021.1", "2021.9", "2021.13", "2021.18"),
    "mvapich2": ("2.3.7",),
}
RELEASES = [
    *(("openmpi", version) for version in OPEN_MPI),
    *((name, version) for name, versions in OTHERS.items() for version in versions),
]
SHAPES = ((1, 2), (2, 1), (2, 2), (4, 8))


def sides(name: str, version: str) -> tuple[HostFacts, ImageFacts]:
    """Return a host and an image with the same MPI release in /opt/mpi."""
    is_open = name == "openmpi"
    pmix = OPEN_MPI.get(version) if is_open else None
    soname = "libmpi.so.40" if is_open else "libmpi.so.12"
    faces = (("pmix",) if pmix else ()) if is_open else ("pmi1", "pmi2")
    alike = {
        "implementation": name,
        "version": version,
        "soname": soname,
        "interfaces": faces,
        "prefix": "/opt/mpi",
        "library": f"/opt/mpi/lib/{soname}",
        "launcher": "/opt/mpi/bin/mpirun",
        "needs": (),
        "device": None if is_open else "ch4:ofi",
    }
    inside = msgspec.structs.replace(whole.MPI if is_open else whole.MPICH, plugins=False, **alike)
    outside = msgspec.structs.replace(
        whole.LAUNCHER, plugins=None, pmix=pmix, leaks=(), folders=("/opt/mpi/lib",), **alike
    )
    runtime = msgspec.structs.replace(whole.RUNTIME, setuid=True)
    image = msgspec.structs.replace(whole.image(mpi=inside), pmix=pmix)
    return whole.host(mpis=(outside,), runtime=runtime), image if pmix else whole.absent(image, "pmix")


@every_row("name,version", RELEASES)
def test_the_same_mpi_inside_and_outside_works(name: str, version: str) -> None:
    host, image = sides(name, version)
    for nodes, ranks in SHAPES:
        request = Request(nodes=nodes, ranks_per_node=ranks)
        said = predict_plan(host, image, request, plan(host, image, request, "mpirun-host"))
        assert said.outcome == "ok", (nodes, ranks, said.because)


def test_a_defect_of_one_launcher_names_the_mpi_that_it_was_measured_under() -> None:
    """A defect that occurs only under the host's mpirun depends on the host's MPI, so its row must name that
    MPI (``under`` or ``launched_by``).
    """
    rows = [row for row in knowledge.mpi().defect if row.modes == ("mpirun-host",)]
    assert rows
    assert [row.id for row in rows if not row.launched_by and not row.under] == []


@every_row("mode,outcome", [("mpirun-host", "ok"), ("srun-pmi2", "unknown"), ("srun-none", "singletons")])
def test_the_pmi_library_of_intel_mpi_counts_in_every_mode(mode: Mode, outcome: str) -> None:
    host, image = sides("intelmpi", "2021.13")
    request = Request(nodes=1, ranks_per_node=2, env={"I_MPI_PMI_LIBRARY": "/usr/lib64/libpmi2.so"})
    assert predict_plan(host, image, request, plan(host, image, request, mode)).outcome == outcome


def test_another_mpi_of_the_host_is_still_judged() -> None:
    host, image = sides("intelmpi", "2021.9")
    (other,) = sides("mpich", "4.2.0")[0].mpis or ()
    request = Request(nodes=2, ranks_per_node=2)
    mixed = msgspec.structs.replace(host, mpis=(other,))
    assert (
        predict_plan(mixed, image, request, plan(mixed, image, request, "mpirun-host")).outcome
        == "init-failure"
    )
