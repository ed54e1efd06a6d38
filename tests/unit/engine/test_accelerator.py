"""Test the predicted outcome for a launch's GPUs: a driver that is too old is a failure."""

import pytest

from tests.unit.engine.whole import HOST, IMAGE, absent, host, image, unread
from tests.unit.tables import every_row
from toolkit.engine.main_fault import main_fault
from toolkit.engine.predict import predict
from toolkit.errors import CheckFailed
from toolkit.launch.jobscript.choose import choose
from toolkit.model.prediction import Request
from toolkit.report.doctor.answer import answer

NEWER = image(cuda="13.0.48", cuda_compat=None, absent={**IMAGE.absent, "cuda_compat": "none"})
ASKED = Request(gpus=True)


@every_row(
    ("on", "of", "request", "gpus"),
    [
        (HOST, IMAGE, ASKED, "gpu"),
        (HOST, IMAGE, Request(), "gpu"),
        (HOST, NEWER, ASKED, "gpu-failure"),
        (HOST, NEWER, Request(), "gpu-failure"),
        (absent(HOST, "gpu_driver", "gpus"), NEWER, Request(), "not-asked"),
        (HOST, absent(IMAGE, "tensorflow_cuda"), ASKED, "cpu-only"),
        (unread(HOST, "gpu_driver"), IMAGE, ASKED, "unknown"),
        (host(gpu_driver="535.54.03", gpu_mismatch=True), IMAGE, ASKED, "gpu-failure"),
    ],
)
def test_the_gpus_of_a_launch_have_an_outcome(on, of, request, gpus):
    assert predict(on, of, request).of("srun-pmix").accelerator == gpus


def test_no_mode_is_chosen_in_which_no_gpu_works():
    verdict = predict(HOST, NEWER, ASKED)
    found = verdict.of("srun-pmix")
    assert (verdict.chosen, verdict.ok("srun-pmix"), found.outcome) == (None, False, "ok")
    assert found.shown == "gpu-failure"
    assert "CUDA 13.0 needs driver" in found.why
    fault = main_fault(verdict)
    assert fault is not None
    assert fault.id == "gpu-driver-too-old"
    assert answer(verdict).word == "No"
    assert answer(verdict, "srun-pmix").text == "CUDA 13.0 needs driver 580.65.06; the host has 550.54.15"


def test_a_launch_is_refused_unless_it_is_forced():
    verdict = predict(HOST, NEWER, ASKED)
    with pytest.raises(CheckFailed, match="toolkit predicts 'gpu-failure'"):
        choose(verdict, "srun-pmix", force=False)
    forced = choose(verdict, "srun-pmix", force=True)
    assert forced.forced
    assert "'gpu-failure'" in forced.because


def test_gpus_that_stay_idle_stop_no_launch():
    verdict = predict(HOST, absent(IMAGE, "tensorflow_cuda"), ASKED)
    assert verdict.chosen == "srun-pmix"
    assert verdict.of("srun-pmix").shown == "ok?"
