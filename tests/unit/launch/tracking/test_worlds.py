"""Test that a job fails if each rank reports a world of size 1, whatever the exit status."""

import msgspec

from tests.unit.launch.examples import SPEC
from tests.unit.tables import every_row
from toolkit.launch.tracking.worlds import all_alone
from toolkit.model.job import JobRecord
from toolkit.model.prediction import Plan, Starter

JSON = '0: {"rank": 0, "size": 1, "host": "n1"}\n1: {"rank": 0, "size": 1, "host": "n2"}\n'


@every_row(
    ("text", "ranks", "alone"),
    [
        ("Hello from rank 0 of 1 on n1\nHello from rank 0 of 1 on n2\n", 2, True),
        ("0: Process 0/1\n1: Process 0/1\n", 2, True),
        ("rank=0 size=1\nrank=0 size=1\n", 2, True),
        ("Rank: 0, world size: 1\nRank: 0, world size: 1\n", 2, True),
        ("I am process 0 out of 1\nI am process 0 out of 1\n", 2, True),
        (JSON, 2, True),
        (JSON, 3, False),
        ("Hello from rank 0 of 1\n", 1, False),
        ("Hello from rank 0 of 1\n", 2, False),
        ("rank 0 of 2\nrank 1 of 2\n", 2, False),
        ("rank 0 of 1\nrank 0 of 1\nrank 0 of 2\n", 2, False),
        ("epoch 0 of 1\nepoch 0 of 1\n", 2, False),
        ("rank 1 of 1\nrank 1 of 1\n", 2, False),
        ("frank 0 of 1\nfrank 0 of 1\n", 2, False),
        ("", 2, False),
    ],
)
def test_ranks_are_alone_if_each_reports_a_world_of_one(text, ranks, alone):
    assert all_alone(text, job(ranks)) is alone


def test_a_starter_that_joins_no_ranks_reports_once_a_node():
    text = "0: process 0 of 1\n1: process 0 of 1\n"
    assert all_alone(text, job(2, "accelerate", each=2))
    assert not all_alone(text, job(2, each=2))
    assert not all_alone(text[:18], job(2, "accelerate", each=2))
    assert not all_alone(text[:18], job(1, "accelerate", each=4))


def job(nodes: int, starter: Starter = "", *, each: int = 1) -> JobRecord:
    spec = msgspec.structs.replace(SPEC, nodes=nodes, ranks_per_node=each)
    plan = Plan(mode="torch", launcher=("srun",), program="torch", starter=starter)
    return JobRecord(
        key="a-1",
        id="1",
        place="x",
        spec=spec,
        mode="torch",
        plan=plan,
        predicted="ok",
        image_digest="",
        submitted="",
    )
