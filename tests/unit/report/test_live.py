"""Test the report of a trial launch: the predicted outcome, the real outcome, and advice about a
difference.
"""

import json
from pathlib import Path

import msgspec

from tests.unit.engine.examples import HOST, IMAGE, with_
from toolkit.engine.predict import predict
from toolkit.launch.live import compare, read
from toolkit.model.live import Live, Seen, Trial
from toolkit.model.prediction import Request
from toolkit.report.live import live_page

RECORDED = Path(__file__).parents[1] / "launch" / "live" / "open-mpi-two-per-node.txt"
OUTPUT = RECORDED.read_text("utf-8")
PREDICTED = predict(HOST, IMAGE, Request(ranks_per_node=2)).of("srun-pmix")
GOOD = with_(compare(PREDICTED, read(OUTPUT), "ok", HOST, OUTPUT), job="live-1", seconds=3.0)


def page(*trials: Trial, host=HOST) -> str:
    live = Live(place="cluster x", image="/a/b.sif", digest=None, nodes=2, ranks_per_node=2, trials=trials)
    return live_page(live, host)


def test_a_good_trial_has_both_sides_and_the_figures():
    text = page(GOOD)
    assert text.startswith("b.sif tried on cluster x, 2 nodes \N{MULTIPLICATION SIGN} 2 ranks")
    assert "predicted      ok:" in text
    assert (
        "observed       ok: 4 of 4 ranks on node1, node2 found world size 4; the allreduce is correct" in text
    )
    assert "between nodes  11.9 µs for 8 B; 2.74 GB/s with 256 KiB" in text
    assert "within a node  0.7 µs for 8 B" in text
    assert "transport      tcp" in text
    assert "prediction was wrong" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_wrong_prediction_is_to_be_reported_with_both_facts():
    seen = Seen(sizes=(1, 1, 1, 1), hosts=("node1", "node2", "node1", "node2"))
    text = page(
        compare(PREDICTED, seen, "singletons", HOST, "OPAL ERROR: Unreachable in file pmix3x_client.c")
    )
    assert "the prediction was wrong: predicted ok, observed singletons; please report" in " ".join(
        text.split()
    )
    assert PREDICTED.because in " ".join(text.split())
    assert "found world size 1" in text
    assert "image-lacks-pmi2" in text


def test_a_missed_fabric_is_told():
    host = with_(HOST, infiniband=("mlx5_0",), fabrics=())
    trial = compare(PREDICTED, read(OUTPUT), "ok", host, OUTPUT)
    assert "MPI did not use the fast network: the nodes have mlx5_0" in " ".join(
        page(trial, host=host).split()
    )


def test_what_was_not_tried_or_not_told_is_said():
    never = Trial(mode="bind", predicted="unavailable", because="no")
    assert "not tried" in page(never)
    quiet = with_(GOOD, seen=with_(GOOD.seen, transport=None))
    assert "the MPI library does not report its transport" in page(quiet)
    nothing = compare(PREDICTED, Seen(), "init-failure", HOST, "")
    assert "none of 4 ranks completed MPI_Init" in page(nothing)


def test_damaged_messages_and_wrong_sums_are_shouted():
    broken = tuple(with_(m, whole=False) for m in GOOD.seen.messages[:1])
    bad = with_(GOOD, observed="comm-failure", seen=with_(GOOD.seen, messages=broken, sums=(False,)))
    text = page(bad)
    assert "damaged messages: 8 B" in text
    assert "the allreduce is WRONG" in " ".join(text.split())


def test_the_json_comes_back_as_it_was():
    live = Live(place="x", image="a", digest="sha256:0", nodes=2, ranks_per_node=2, trials=(GOOD,))
    text = msgspec.json.encode(live)
    assert msgspec.json.decode(text, type=Live) == live
    assert json.loads(text)["schema"] == "toolkit.live/1"
