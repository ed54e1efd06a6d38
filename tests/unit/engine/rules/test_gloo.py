"""Horovod without MPI: ranks that find each other through Gloo."""

from tests.unit.engine.whole import IMAGE, absent, case, image, unread

FIRES = {
    "gloo-lacks-horovod": [case(of=absent(IMAGE, "horovod"), mode="gloo")],
    "horovod-lacks-gloo": [case(of=image(horovod_built=("mpi",)), mode="gloo")],
}
QUIET = {
    "gloo-lacks-horovod": [case(mode="gloo")],
    "horovod-lacks-gloo": [case(mode="gloo"), case(of=absent(IMAGE, "horovod"), mode="gloo")],
}
UNDECIDED = {
    "gloo-lacks-horovod": [case(of=unread(IMAGE, "horovod"), mode="gloo")],
    "horovod-lacks-gloo": [case(of=image(horovod_built=None), mode="gloo")],
}
OUTCOMES = {"gloo-lacks-horovod": "unavailable", "horovod-lacks-gloo": "init-failure"}
