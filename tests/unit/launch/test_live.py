"""Test how toolkit reads the output of a trial launch, and its conclusions."""

from pathlib import Path

import msgspec

from tests.unit.engine.examples import HOST, IMAGE, INTEL_MPI, MPICH, image_with, with_
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.launch.live import compare, missed_fast_network, outcome, read, transport, verbose
from toolkit.model.live import Live, Seen, Transport
from toolkit.model.prediction import Request

HERE = Path(__file__).parent / "live"
GOOD = (HERE / "open-mpi-two-per-node.txt").read_text("utf-8")
PREDICTED = predict(HOST, IMAGE, Request()).of("srun-pmix")


def said(*lines: str) -> str:
    return "".join(f"{number}: live: {line}\n" for number, line in enumerate(lines))


RIGHT = said(
    "rank 0 of 2 on a", "rank 1 of 2 on b", "rank 0 sum right", "rank 1 sum right", "rank 0 end", "rank 1 end"
)


def test_a_real_trial_is_read():
    seen = read(GOOD)
    assert seen.sizes == (4, 4, 4, 4)
    assert set(seen.hosts) == {"node1", "node2"}
    assert seen.sums == (True,) * 4
    assert seen.ended == 4
    assert seen.program == "c"
    assert seen.library.startswith("Open MPI v5.0.10")
    assert [m.bytes for m in seen.messages if m.between == "nodes"] == [8, 64, 1024, 16384, 262144, 4194304]
    assert [m.bytes for m in seen.messages if m.between == "node"][-1] == 4194304
    assert all(m.whole and m.rate > 0 for m in seen.messages)
    assert outcome(seen, GOOD, 4, "completed") == "ok"


@every_row(
    ("file", "name"),
    [("open-mpi-two-per-node.txt", "tcp"), ("mpich-ucx.txt", "tcp/eth0"), ("mpich-libfabric.txt", "sockets")],
)
def test_the_transport_between_nodes_is_what_the_library_says(file, name):
    text = (HERE / file).read_text("utf-8")
    found = read(text).transport
    assert found
    assert found.name == name
    assert found.evidence in text


@every_row(
    ("line", "name"),
    [
        ("[n1:1] UCX  INFO  ucp_context_0 inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)", "rc_mlx5/mlx5_0:1"),
        (
            "[n1:1] UCX  INFO  0x55d ep_cfg[1]: tag(self/memory cma/memory rc_mlx5/mlx5_0:1)",
            "rc_mlx5/mlx5_0:1",
        ),
        ("[0] MPI startup(): libfabric provider: psm3", "psm3"),
    ],
)
def test_fast_transports_are_told_too(line, name):
    assert transport([line]).name == name


def test_open_mpi_over_libfabric_names_the_provider():
    lines = ["select: component cm selected", "mca:base:select:(  mtl) Selected component [ofi]"]
    assert transport(lines).name == "ofi"
    assert transport([*lines, "libfabric provider: cxi - x"]).name == "ofi over cxi"
    assert transport(lines[1:]) is None


def test_what_stays_within_a_node_is_no_transport_between_nodes():
    assert transport(["UCX  INFO  ep_cfg[1]: tag(self/memory cma/memory)"]) is None
    assert transport(["[n1:1] mca: bml: Using sm btl for send to [[1,1],1] on node n1"]) is None
    ob1 = "[n1:1] select: component ob1 selected"
    assert transport([ob1, "UCX  INFO  x inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)"]) is None


@every_row(
    ("output", "state", "expected"),
    [
        (RIGHT, "completed", "ok"),
        (RIGHT.replace("sum right", "sum wrong"), "failed", "comm-failure"),
        (RIGHT + said("pingpong nodes 8 0.1 damaged"), "completed", "comm-failure"),
        (said("rank 0 of 1 on a", "rank 0 of 1 on b"), "completed", "singletons"),
        (said("rank 0 of 3 on a"), "completed", "wrong-size"),
        (said("rank 0 of 2 on a", "rank 1 of 2 on b"), "failed", "comm-failure"),
        (said("rank 0 of 2 on a", "rank 1 of 2 on b") + "Segmentation fault\n", "failed", "crash"),
        (said("rank 0 of 2 on a", "rank 1 of 2 on b"), "timeout", "hang"),
        ("srun: error: n1: task 0: Alarm clock\n", "failed", "hang"),
        (said("cannot load libmpi.so.40: no such file"), "failed", "loader-failure"),
        (
            "x: error while loading shared libraries: libz.so.1: cannot open shared object file\n",
            "failed",
            "loader-failure",
        ),
        ("srun: error: Invalid MPI type 'pmix', consult\n", "failed", "unavailable"),
        ("[m:1] Caught signal 11 (Segmentation fault: x)\n", "failed", "crash"),
        ("It looks like MPI_INIT failed for some reason; your\n", "failed", "init-failure"),
        ("", "failed", "init-failure"),
    ],
)
def test_how_a_trial_ended(output, state, expected):
    assert outcome(read(output), output, 2, state) == expected


def test_a_rank_that_slurm_ended_did_not_crash():
    first = "0: Abort(6): Fatal error in internal_Init: Other MPI error\n"
    ended, bus = "srun: Terminating StepId=157.0\n", "srun: error: node2: task 1: Bus error\n"
    assert outcome(Seen(), first + ended + bus, 2, "failed") == "init-failure"
    assert outcome(Seen(), first + bus + ended, 2, "failed") == "crash"


def test_one_rank_alone_is_no_singleton():
    text = said("rank 0 of 1 on a", "rank 0 sum right", "rank 0 end")
    assert outcome(read(text), text, 1, "completed") == "ok"


def test_prediction_and_observation_are_compared():
    right = compare(PREDICTED, read(RIGHT), "ok", HOST, RIGHT)
    assert (right.agrees, right.good, right.findings) == (True, True, ())
    wrong = compare(
        PREDICTED, Seen(sizes=(1, 1)), "singletons", HOST, "OPAL ERROR: Unreachable in file pmix3x_client.c"
    )
    assert (wrong.agrees, wrong.good) == (False, False)
    assert wrong.findings[0].id == "image-lacks-pmi2"
    foreseen = compare(with_(PREDICTED, outcome="singletons"), Seen(), "singletons", HOST, "")
    assert (foreseen.agrees, foreseen.good) == (True, False)
    drawn = compare(with_(PREDICTED, outcome="hang", by_chance=("crash",)), Seen(), "crash", HOST, "")
    assert (drawn.agrees, drawn.because) == (True, f"{PREDICTED.because}; some launches end in crash instead")
    unknown = compare(with_(PREDICTED, outcome="unknown"), Seen(), "ok", HOST, "")
    assert (unknown.agrees, unknown.good) == (None, True)


TCP = Seen(transport=Transport(name="tcp", evidence="x"))
IB = Seen(transport=Transport(name="rc_mlx5/mlx5_0:1", evidence="x"))


@every_row(
    ("infiniband", "fabrics", "seen", "expected"),
    [
        (("mlx5_0",), (), TCP, True),
        (("mlx5_0",), (), IB, False),
        ((), ("slingshot",), Seen(transport=Transport(name="tcp;ofi_rxm", evidence="x")), True),
        ((), ("slingshot",), Seen(transport=Transport(name="cxi", evidence="x")), False),
        ((), (), TCP, False),
        (None, (), TCP, None),
        (None, ("efa",), TCP, True),
        (("mlx5_0",), (), Seen(), None),
    ],
)
def test_a_fast_network_that_was_missed(infiniband, fabrics, seen, expected):
    assert missed_fast_network(with_(HOST, infiniband=infiniband, fabrics=fabrics), seen) is expected


def test_each_mpi_is_asked_in_its_own_words():
    assert "OMPI_MCA_btl_base_verbose" in verbose(IMAGE)
    assert "MPIR_CVAR_DEBUG_SUMMARY" in verbose(image_with(MPICH))
    assert "I_MPI_DEBUG" in verbose(image_with(INTEL_MPI))


def test_a_result_is_good_only_if_all_of_it_is():
    good = compare(PREDICTED, read(RIGHT), "ok", HOST, RIGHT)
    live = Live(place="x", image="a.sif", digest=None, nodes=2, ranks_per_node=1, trials=(good,))
    assert live.good
    bad = msgspec.structs.replace(live, trials=(good, with_(good, observed=None)))
    assert not bad.good
