"""What job output means: every signature finds its own sample, and nothing else is claimed."""

import re

import pytest

from toolkit import knowledge
from toolkit.engine.explain import explain
from toolkit.engine.registry import RULES

SIGNATURES = knowledge.signatures()


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_a_signature_finds_its_sample(signature):
    found = explain(f"something before\n{signature.sample}\nsomething after\n")
    assert signature.title in [f.title for f in found]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_a_signature_is_tied_to_a_rule_or_to_none(signature):
    assert signature.finding in {"", *(rule.id for rule in RULES)}
    assert re.compile(signature.pattern)
    assert signature.fix
    assert signature.source


HARMLESS = """\
Epoch 1/3\r 1/10 [==>......] - loss: 2.3
2026-11-21 05:00:00.1: I tensorflow/core/util/port.cc:113] oneDNN custom operations are on.
2026-11-21 05:00:00.2: E xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory
2026-11-21 05:00:00.3: W tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT
WARNING: Skipping mount /etc/localtime: no such file or directory in the container
INFO:    Converting SIF file to temporary sandbox...
srun: job 12 queued and waiting for resources
srun: job 12 has been allocated resources
preflight: MPI reports a world of 2, as many as tasks
0: memory: 12 GiB of 16 GiB; no file was not found
accuracy 0.97
"""


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_a_signature_is_silent_on_what_others_mean(signature):
    assert {s.id for s in SIGNATURES if re.search(signature.pattern, s.sample)} == {signature.id}


def test_nothing_is_recognised_in_output_that_means_no_harm():
    assert explain(HARMLESS) == ()


@pytest.mark.parametrize("library", ["libcudart.so.11.0", "libcuda.so.1", "libnvinfer.so.7", "libcudnn.so.8"])
def test_a_library_of_cuda_that_is_not_there_is_no_error(library):
    line = f"dlerror: {library}: cannot open shared object file: No such file or directory"
    (finding,) = explain(line)
    assert (finding.id, finding.severity) == ("missing-gpu-library", "info")


def test_lines_are_numbered_as_an_editor_does_however_many_there_are():
    sign = "[n] OPAL ERROR: Unreachable in file pmix3x_client.c"
    (finding,) = explain("x\u2028y\x0cz\n" * 250_000 + f"50%\r{sign}\n")
    assert finding.evidence == (f"line 250001: {sign}",)
    (finding,) = explain("a\nb", f"b\n{sign}\n", skipped=100)
    assert finding.evidence == (f"line 103: {sign}",)


def test_ids_of_signatures_are_unique():
    assert len({s.id for s in SIGNATURES}) == len(SIGNATURES) >= 25


def test_the_evidence_names_the_lines():
    (finding,) = explain("hello\n[m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112\n")
    assert finding.evidence == (
        "line 2: [m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
    )


def test_a_cause_stands_before_its_consequence():
    consequence = "srun: error: node2: task 1: Exited with exit code 1"
    text = f"{consequence}\n[n] OPAL ERROR: Unreachable in file pmix3x_client.c\n"
    assert [f.severity for f in explain(text)] == ["error", "info"]


def test_nothing_is_said_of_output_that_is_not_known():
    assert explain("epoch 1: accuracy 0.97\n") == ()


def test_a_long_line_and_much_output_do_no_harm():
    assert explain("x" * 5_000_000 + "\n" + "y\n" * 10_000) == ()
