"""Test the rules about libraries that the image's loader must find: MPI libraries, and libraries that they
need.
"""

import msgspec

from tests.unit.engine.rules.test_bind import bound, provider
from tests.unit.engine.whole import HOST, IMAGE, MPI, MPICH, absent, case, host, image, mpi, unread
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.engine.registry import RULES
from toolkit.model.facts import ImageProgram
from toolkit.model.prediction import Request

PROBE = "/opt/probe"
HOROVOD = "/opt/venv/lib/python3.11/site-packages/horovod/tensorflow/mpi_lib.so"
STUB = "/opt/venv/lib/python3.11/site-packages/mpi4py/MPI.openmpi.cpython-311-x86_64-linux-gnu.so"
ELSEWHERE = {"LD_LIBRARY_PATH": "/opt/other/lib"}
FORCED = host(environment={"APPTAINERENV_LD_LIBRARY_PATH": "/opt/other/lib"})
BESIDE = {"binds": ("/opt/ofi/lib:/host/ofi",), "env": {"LD_LIBRARY_PATH": "/host/ofi"}}


def loading(of=IMAGE, **programs: str):
    found = {PROBE: "", **programs}
    line = f"{PROBE} loads {found[PROBE] or 'a missing MPI library'}"
    return msgspec.structs.replace(of, programs=found, evidence={**of.evidence, "programs": line})


def lacking(*sonames: str, **changes):
    of = mpi(lacks=sonames, needs=tuple(sorted({*MPI.needs, *sonames})))
    return loading(of, **{PROBE: MPI.library, **changes})


NO_HWLOC = lacking("libhwloc.so.15")
NOT_USED = msgspec.structs.replace(NO_HWLOC, programs={})
OFFERED = msgspec.structs.replace(NOT_USED, libraries=("libmpi.so.40",))
ORIGIN = {"LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu"}
LED = mpi(library="/opt/ompi/lib/libmpi.so.40", prefix="/opt/ompi", launcher="/opt/ompi/bin/mpirun")


def led(needs: str, *, command: bool = True):
    """Return a launch in which the image's mpirun starts a program that finds no MPI library by itself."""
    program = ImageProgram(command=(PROBE,), path=PROBE, mpi=True, needs=needs) if command else None
    of = msgspec.structs.replace(loading(LED), program=program, programs_need={PROBE: needs})
    return case(of=of, mode="mpirun-container", launcher=("/opt/ompi/bin/mpirun",), nodes=1, ranks_per_node=2)


FIRES = {
    "programs-find-no-mpi": [
        case(of=loading(image(mpi=MPICH)), mode="srun-pmi2"),
        case(of=loading(**{HOROVOD: ""})),
        case(of=loading(**{HOROVOD: ""}), mode="gloo"),
        case(of=loading(), env=ELSEWHERE),
        case(FORCED, loading()),
        case(of=loading(image(environment=ELSEWHERE)), env=ELSEWHERE),
        bound(of=loading(image(mpi=MPICH))),
        case(of=loading(absent(IMAGE, "mpi"), **{HOROVOD: ""}), mode="gloo"),
        case(of=loading(**{STUB: ""})),
        led("libmpi.so.12"),
        led("libmpi.so.12", command=False),
    ],
    "mpi-lacks-library": [
        case(of=NO_HWLOC),
        case(of=OFFERED),
        case(of=NOT_USED),
        case(of=NO_HWLOC, env=ELSEWHERE),
        case(of=lacking("libcuda.so.1")),
        case(absent(HOST, "gpu_driver"), lacking("libcuda.so.1"), container=("--nv",)),
        case(of=lacking("libhwloc.so.15", **{HOROVOD: MPI.library}), mode="gloo"),
        case(of=lacking("libfabric.so.1")),
    ],
}
QUIET = {
    "programs-find-no-mpi": [
        case(of=loading(**{HOROVOD: MPI.library})),
        case(of=loading(**{STUB: MPI.library})),
        case(of=loading(), mode="gloo"),
        led("libmpi.so.40"),
        led("libmpi.so.40", command=False),
        case(of=loading(), env=ORIGIN),
        case(of=loading(absent(IMAGE, "mpi"))),
        bound(of=loading()),
    ],
    "mpi-lacks-library": [
        case(),
        case(of=absent(IMAGE, "mpi")),
        case(of=NO_HWLOC, mode="gloo"),
        case(of=unread(loading(), "mpi"), mode="gloo"),
        case(of=lacking("libcuda.so.1", "libnvidia-ml.so.1"), container=("--nv",)),
        case(host(libfabric="/opt/ofi/lib/libfabric.so.1"), lacking("libfabric.so.1"), **BESIDE),
        bound(of=lacking("libhwloc.so.15")),
        bound(provider(soname="libmpi.so.12"), lacking("libpmix.so.2")),
        bound(provider(soname=None), lacking("libpmix.so.2")),
    ],
}
UNDECIDED = {
    "programs-find-no-mpi": [case(of=unread(IMAGE, "programs"))],
    "mpi-lacks-library": [
        case(of=unread(IMAGE, "mpi.lacks")),
        case(unread(HOST, "gpu_driver"), lacking("libcuda.so.1")),
        case(of=unread(loading(**{HOROVOD: MPI.library}), "mpi"), mode="gloo"),
    ],
}
OUTCOMES = {"programs-find-no-mpi": "loader-failure", "mpi-lacks-library": "loader-failure"}
BECOMES = {
    "programs-find-no-mpi": [
        *("loader-failure", "loader-failure", "loader-failure", "unknown", "unknown"),
        *("loader-failure", "unknown", "loader-failure", "unknown", "loader-failure"),
        "loader-failure",
    ],
    "mpi-lacks-library": [
        *("loader-failure", "loader-failure", "unknown", "unknown", "ok"),
        *("loader-failure", "loader-failure", "loader-failure"),
    ],
}


@every_row("name", FIRES)
def test_a_program_that_cannot_be_loaded_is_never_called_good(name: str):
    from toolkit.engine.judge import judge

    rules = tuple(r for r in RULES if r.id == name)
    assert [judge(c, rules)[0].outcome for c in FIRES[name]] == BECOMES[name]


@every_row("of", [loading(image(mpi=MPICH)), NO_HWLOC], ids=["programs", "mpi"])
def test_no_mode_starts_what_the_loader_ends(of):
    verdict = predict(HOST, of, Request(nodes=1, ranks_per_node=2))
    started = [p for p in verdict.predictions if p.outcome not in {"unavailable", "loader-failure"}]
    assert [p.mode for p in started] == ["gloo"]
    assert verdict.chosen is None


def test_an_intel_mpi_that_is_linked_with_libfabric_does_not_load_without():
    intel = msgspec.structs.replace(
        MPICH,
        implementation="intelmpi",
        version="2021.1.1",
        lacks=("libfabric.so.1",),
        library="/opt/venv/lib/libmpi.so.12",
    )
    of = loading(absent(image(mpi=intel), "libfabric"), **{PROBE: intel.library})
    verdict = predict(HOST, of, Request(nodes=2))
    assert {verdict.of(m).outcome for m in ("srun-pmi2", "srun-none")} == {"loader-failure"}
