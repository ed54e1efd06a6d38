"""Test the preflight messages about the ranks' facts: one sentence per fault, with node and rank."""

from dataclasses import replace
from pathlib import Path

from tests.unit.tables import every_row
from toolkit.trainers.checks.node import Facts
from toolkit.trainers.checks.verdict import judge
from toolkit.trainers.checks.wanted import Requirements

GIB = 2**30
WANTED = Requirements(
    tasks=4, nodes=2, gpus_per_node=2, fabric_gbit=100.0, output=Path("/out"), image=Path("/i.sif")
)


def ranks(**second):
    """Return two ranks on each of two nodes; the given values apply to the second node."""
    first = Facts(0, "n1", first=True, gpus=(0,), output=GIB, tmp=GIB, image="ab", gbit=90.0)
    there = replace(first, rank=2, host="n2")
    return [
        first,
        Facts(1, "n1", gpus=(1,)),
        replace(there, **second),
        Facts(3, "n2", gpus=() if second.get("gpus") == () else (1,)),
    ]


def test_all_that_is_well_is_counted_and_nothing_is_said():
    verdict = judge(ranks(), WANTED)
    assert (verdict.failures, verdict.warnings, verdict.nodes, verdict.slowest) == ((), (), 2, 90.0)


def test_what_is_not_asked_for_is_not_judged():
    strange = ranks(gpus=(), output="gone", gbit=0.001, image="cd")
    verdict = judge(strange, Requirements(tasks=4, image=None))
    assert [line for line in verdict.failures if "GPU" in line or "/out" in line] == []
    assert verdict.warnings == ()


@every_row(
    ("second", "said"),
    [
        ({"gpus": ()}, "rank 2 on n2: no GPU can be opened on this node; the job has 2 on each node"),
        ({"gpus": (1,)}, "rank 2 on n2: 1 GPU can be opened on this node; the job has 2 on each node"),
        ({"output": 2**20}, "rank 2 on n2: /out has 1 MiB free; the job needs 100 MiB"),
        ({"output": "Stale file handle"}, "rank 2 on n2: /out cannot be used: Stale file handle"),
        ({"tmp": 0}, "rank 2 on n2: TMPDIR has 0 bytes free; the job needs 16 MiB"),
        ({"ahead": 75.0}, "rank 2 on n2: the clock is 75.0 s ahead of the clock of n1"),
        ({"ahead": -75.0}, "rank 2 on n2: the clock is 75.0 s behind the clock of n1"),
        ({"image": "cd"}, "rank 2 on n2: /i.sif differs from the image on n1"),
        (
            {"image": "!Input/output error"},
            "rank 2 on n2: /i.sif cannot be read: Input/output error",
        ),
    ],
)
def test_what_is_wrong_on_a_node_is_one_sentence_with_its_name_and_rank(second, said):
    assert judge(ranks(**second), WANTED).failures == (said,)


def test_ranks_on_fewer_nodes_than_the_job_has_are_told_with_the_names():
    alone = [replace(one, host="n1", first=one.rank == 0, gpus=(0, 1)) for one in ranks()]
    assert judge(alone, WANTED).failures == ("the ranks run on 1 node (n1), but the job has 2 nodes",)


def test_clocks_that_differ_a_little_are_told_and_end_nothing():
    verdict = judge(ranks(ahead=1.5), WANTED)
    assert verdict.failures == ()
    assert verdict.warnings == ("rank 2 on n2: the clock is 1.5 s ahead of the clock of n1",)
    assert judge(ranks(ahead=0.9), WANTED).warnings == ()
    assert judge(ranks(ahead=1.5), replace(WANTED, max_skew=1.2)).failures


def test_a_link_below_a_fifth_of_the_fabric_is_told_and_ends_nothing():
    verdict = judge(ranks(gbit=19.0), WANTED)
    assert (verdict.failures, verdict.slowest) == ((), 19.0)
    assert verdict.warnings == (
        "rank 2 on n2: receives only 19 Gbit/s from another node; the expected speed is 100 Gbit/s",
    )


def test_one_stream_of_tcp_is_not_measured_against_more_than_it_can_carry():
    assert judge(ranks(gbit=19.0), WANTED, tcp=True).warnings == ()
    assert judge(ranks(gbit=3.0), WANTED, tcp=True).warnings != ()
    slow = replace(WANTED, fabric_gbit=10.0)
    assert judge(ranks(gbit=3.0), slow, tcp=True).warnings == ()


def test_thousands_of_ranks_are_judged_at_once():
    many = [replace(ranks()[0], rank=n, host=f"n{n}", gpus=(0, 1)) for n in range(2000)]
    assert judge(many, replace(WANTED, nodes=2000)).failures == ()
