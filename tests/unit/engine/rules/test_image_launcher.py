"""Test the rules about settings and folders of the image that its launcher uses."""

from tests.unit.engine.examples import with_
from tests.unit.engine.whole import HOST, IMAGE, MPI, MPICH, absent, case, host, image, unread
from toolkit.engine.predict import predict
from toolkit.model.prediction import Request

SCRATCH = {"TMPDIR": "/scratch/tmp"}
IB7 = {"OMPI_MCA_oob_tcp_if_include": "ib7"}
NEWER = with_(MPI, version="5.0.8")
INSIDE = "mpirun-container"


def inside(of=IMAGE, **more):
    return case(of=of, mode="mpirun-container", nodes=1, ranks_per_node=2, **more)


ALLOWED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SLIM = with_(MPI, components={"ess": ("env", "hnp"), "pmix": ("isolated",)})
FIRES = {
    "image-launcher-without-pmix": [
        inside(image(mpi=SLIM)),
        inside(image(mpi=with_(SLIM, components={"ess": ("env", "hnp")}))),
    ],
    "image-launcher-refuses-root": [
        inside(container=("--fakeroot",)),
        inside(image(mpi=NEWER), container=("-f",)),
        inside(container=("--fakeroot",), env={"OMPI_ALLOW_RUN_AS_ROOT": "1"}),
    ],
    "image-tmpdir-not-writable": [
        inside(image(environment=SCRATCH)),
        inside(image(environment=SCRATCH, mpi=NEWER)),
        inside(on=host(tmpdir="/scratch/job-7")),
    ],
    "image-launcher-interface": [
        inside(image(settings=IB7)),
        inside(image(environment=IB7)),
    ],
}
QUIET = {
    "image-launcher-without-pmix": [
        inside(),
        inside(absent(IMAGE, "mpi")),
        inside(image(mpi=with_(SLIM, version="5.0.8"))),
        inside(image(mpi=with_(SLIM, version="1.10.2"))),
        inside(image(mpi=with_(SLIM, components={"ess": ("hnp",), "pmix": ("ext3x", "isolated")}))),
        inside(image(mpi=with_(SLIM, components={"btl": ("tcp",)}))),
    ],
    "image-launcher-refuses-root": [
        inside(),
        inside(image(mpi=MPICH), container=("--fakeroot",)),
        inside(absent(IMAGE, "mpi"), container=("--fakeroot",)),
        inside(container=("--fakeroot",), env=ALLOWED),
        inside(image(environment=ALLOWED), container=("--fakeroot",)),
        inside(container=("--fakeroot",), launcher=("mpirun", "--allow-run-as-root")),
    ],
    "image-tmpdir-not-writable": [
        inside(),
        inside(absent(IMAGE, "mpi")),
        inside(image(environment=SCRATCH, mpi=MPICH)),
        inside(image(environment={"TMPDIR": "/tmp/me"})),
        inside(on=host(tmpdir="/scratch/job-7"), binds=("/scratch",)),
        inside(on=host(tmpdir="~/tmp")),
        inside(on=host(tmpdir="/scratch/job-7"), unset=("TMPDIR",)),
        inside(on=host(tmpdir="/scratch/job-7"), container=("--cleanenv",)),
        inside(image(environment=SCRATCH), binds=("/scratch",)),
        inside(image(environment=SCRATCH), container=("--env", "TMPDIR=/tmp")),
    ],
    "image-launcher-interface": [
        inside(),
        inside(image(settings=IB7, mpi=NEWER)),
        inside(image(settings={"OMPI_MCA_oob_tcp_if_include": "10.0.0.0/8"})),
        inside(image(settings={"OMPI_MCA_oob_tcp_if_include": "eth0,ib7"})),
    ],
}
UNDECIDED = {
    "image-launcher-without-pmix": [inside(unread(IMAGE, "mpi"))],
    "image-launcher-refuses-root": [inside(unread(IMAGE, "mpi"), container=("--fakeroot",))],
    "image-launcher-interface": [
        case(unread(HOST, "interfaces"), image(settings=IB7), "mpirun-container", nodes=1, ranks_per_node=2)
    ],
}
OUTCOMES = dict.fromkeys(FIRES, "init-failure")


def test_settings_in_files_of_the_image_are_judged_as_variables_are():
    of = image(settings={"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "ib7"})
    assert predict(HOST, of, Request(nodes=2)).of("srun-pmix").outcome == "comm-failure"
    for nodes in (1, 2):  # ranks of one node connect in MPI_Init, ranks of different nodes later
        several = predict(HOST, of, Request(nodes=nodes, ranks_per_node=2))
        assert several.of("srun-pmix").outcome == "init-failure"


def test_a_setting_of_the_image_that_was_not_measured_is_its_makers_choice():
    of = image(settings={"OMPI_MCA_example_of_nothing": "1"})
    assert predict(HOST, of, Request(nodes=2)).of("srun-pmix").outcome == "ok"
