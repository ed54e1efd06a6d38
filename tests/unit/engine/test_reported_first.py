"""Test that toolkit's first finding for each output in reported.txt is the cause in the public issue."""

from pathlib import Path

from tests.unit.tables import every_row
from toolkit.engine.logs.signature_match import explain

REPORTED = Path(__file__).with_name("reported.txt").read_text("utf-8").split("\n== ")[1:]


@every_row("case", REPORTED, ids=lambda case: case.partition(" |")[0])
def test_the_first_finding_is_what_was_wrong(case):
    head, _, text = case.partition("\n")
    assert next((finding.id for finding in explain(text)), "-") == head.rpartition(" | ")[2]


def test_many_were_posted_and_none_twice():
    texts = [case.partition("\n")[2] for case in REPORTED]
    assert len(set(texts)) == len(texts) >= 100


@every_row(
    "line",
    [
        "RuntimeError: No CUDA GPUs are available",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    ],
)
def test_pytorch_says_in_its_own_words_that_there_is_no_gpu(line):
    assert [finding.id for finding in explain(line)] == ["cuda-no-device"]


def test_a_missing_symbol_of_libstdcxx_is_not_a_fault_of_glibc():
    line = (
        "ImportError: /opt/conda/lib/libstdc++.so.6: version `CXXABI_1.3.15' not found (required by ./a.so)"
    )
    assert [finding.id for finding in explain(line)] == ["symbol-of-newer-libstdcxx"]


def test_a_step_that_was_never_made_is_the_cause_of_the_time_that_ran_out():
    waits = "srun: Job 12 step creation still disabled, retrying (Requested nodes are busy)"
    ends = "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-21T05:00:00 DUE TO TIME LIMIT ***"
    assert [finding.id for finding in explain(f"{waits}\n{ends}")] == ["slurm-step-waits", "time-limit"]


def test_mpirun_and_daemons_of_two_releases_are_told_from_a_message_that_was_lost():
    told = "[n1:1] [[1,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
    assert [f.id for f in explain(f"{told}grpcomm_direct.c at line 355")] == ["open-mpi-releases-differ"]
    assert [f.id for f in explain(f"{told}util/show_help.c at line 501")] == ["open-mpi-message-lost"]


def test_a_package_of_the_home_is_told_beside_what_it_does_not_find():
    """The output is from aertslab/SCENICprotocol issue 2, where home folders are not in /home."""
    text = """\
  File "/user/leuven/325/ada/.local/lib/python3.7/site-packages/scanpy/_utils.py", line 17, in <module>
    from packaging import version
ModuleNotFoundError: No module named 'packaging'
"""
    assert [finding.id for finding in explain(text)] == ["python-module-missing", "user-packages-shadow"]
