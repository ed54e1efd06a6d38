"""Test the wrapper that gives rank numbers to programs without MPI."""

from tests.unit.engine.whole import HOST, IMAGE, absent, image
from tests.unit.tables import every_row
from toolkit.engine.planning.proposal import GLOO_FILE, propose
from toolkit.model.prediction import MPI_MODES, Request


def test_an_image_of_toolkit_has_the_wrapper_inside():
    plan = propose(HOST, image(stack={"schema": "toolkit.stack/1"}), Request(), "gloo")
    assert plan.wrapper == ("python", "-m", "toolkit.trainers.gloo", "--")


def test_to_another_image_the_job_brings_the_wrapper():
    plan = propose(HOST, absent(IMAGE, "stack"), Request(), "gloo")
    assert plan.wrapper == ("python3", GLOO_FILE, "--")


@every_row("mode", MPI_MODES)
def test_what_speaks_mpi_needs_no_wrapper(mode):
    assert propose(HOST, IMAGE, Request(), mode).wrapper == ()
