"""Test each learning option against published formulas, a training in one process, and the metrics."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.services.training import TRAIN, TWO, metrics

PROGRAMS = Path(__file__).parent / "learning"

SHARED = ("plain", "lars", "lamb", "xla", "accumulated", "corrected", "ahead", "embedded", "shared norms")
"""Settings with which several ranks or devices must compute the same weights as one rank."""

READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
events = EventAccumulator(sys.argv[1], size_guidance={"tensors": 0})
events.Reload()
found = {}
for tag in events.Tags()["tensors"]:
    found[tag] = [float(tensor_util.make_ndarray(one.tensor_proto)) for one in events.Tensors(tag)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def program(inside):
    def run(name, *launcher):
        done = inside(
            *launcher,
            "python",
            f"/tests/{name}.py",
            binds={PROGRAMS: "/tests:ro"},
            env={"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": "/opt/toolkit/lib"},
        )
        assert done.ok, done.lines[-20:]
        return json.loads(next(line for line in reversed(done.lines) if line.startswith("{"))), done.lines

    return run


@pytest.fixture(scope="module")
def alone(program):
    return program("alone")


@pytest.fixture(scope="module")
def together(program):
    return program("together", *TWO)[0]


@pytest.fixture(scope="module")
def mirrored(program):
    return program("mirrored")[0]


@pytest.fixture(scope="module")
def train(inside, few, tmp_path_factory):
    def run(*options, ranks=1):
        out = tmp_path_factory.mktemp("out")
        launcher, strategy = (TWO, "horovod") if ranks == 2 else ((), "single")
        words = (*launcher, *TRAIN, "--data", "/data", "--strategy", strategy, *options)
        done = inside(*words, binds={few: "/data:ro", out: "/out"})
        assert done.ok, done.lines[-20:]
        return out, done.lines

    return run


@pytest.mark.parametrize(
    "name",
    [
        *("sgd", "momentum", "nesterov", "sgd weight decay", "lars"),
        *("nesterov corrected", "nesterov decayed", "looks ahead and goes on"),
        *("embedded, sgd", "embedded, adam"),
        *("corrected", "uncorrected", "cosine", "polynomial", "exponential", "step"),
        *("label smoothing", "regularised", "accumulated", "xla", "goes on"),
    ],
)
def test_weights_are_those_of_the_formulas_in_numpy(alone, name):
    assert alone[0][name] < 2e-6, alone[0]


@pytest.mark.parametrize("name", ["adam", "adam weight decay", "lamb"])
def test_weights_of_adam_are_those_of_the_formulas(alone, name):
    # TensorFlow adds epsilon to the root before the bias correction, and the published algorithm after it.
    assert alone[0][name] < 2e-4


def test_without_momentum_correction_a_rate_that_rises_leads_elsewhere(alone):
    assert alone[0]["correction changes"] > 0.05


def test_a_rate_without_a_decay_is_that_of_the_ranks_that_go_on(alone):
    assert alone[0]["rates of four and of one"] == pytest.approx([0.4, 0.1])


def test_the_rate_steps_and_follows_the_reference_batch_and_the_accumulated_ones(alone):
    assert alone[0]["step rates"] == pytest.approx([0.1, 0.01, 0.001])
    assert alone[0]["reference batch rate"] == pytest.approx(0.4)
    assert alone[0]["accumulated rate"] == pytest.approx(0.4)


def test_label_smoothing_gives_the_loss_of_the_formula(alone):
    ours, theirs = alone[0]["smoothed loss"]
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_the_same_seed_gives_the_same_bits(alone, together):
    assert alone[0]["same twice"] is True
    assert together["same twice"] is True


def test_xla_compiles_the_step_and_auto_does_not_where_it_is_slower(alone):
    found = alone[0]
    assert (found["plain compiled"], found["xla compiled"]) == (False, True)
    assert found["auto"] is False


@pytest.mark.parametrize(
    ("rate", "met"), [(0.001, 66 / 65536), (0.1, 6554 / 65536), (0.1875, 0.1875), (0.25, 0.25), (0.5, 0.5)]
)
def test_dropout_drops_the_share_and_keeps_the_mean(alone, rate, met):
    share, kept = alone[0][f"dropped {rate}"]
    # The tolerance is six standard deviations of a share among 400,000 samples.
    assert share == pytest.approx(met, abs=6 * math.sqrt(met * (1 - met) / 400_000))
    assert kept == pytest.approx(1 / (1 - met))


def test_dropout_draws_each_number_for_itself_unless_a_shape_says_otherwise(alone):
    found = alone[0]
    assert found["dropped together"] < 6 / math.sqrt(50_000)
    assert found["dropped rows"] == [1]
    assert found["dropped 0.0"] == [0, 1]
    assert found["dropped by xla"] == pytest.approx(0.25, abs=0.005)
    assert found["dropped float16"] == "float16"


def test_dropout_is_that_of_keras_in_all_but_its_draws(alone):
    found = alone[0]
    assert found["layers that draw bits"] == 1, "a layer with a seed of its own keeps its numbers"
    assert found["nothing dropped"] is True
    assert found["dropped in training"] == pytest.approx(0.5, abs=0.005)
    assert found["gradient is the mask"] is True
    assert found["saved as"].startswith(("keras.", "tf_keras."))


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_pooling_before_bias_and_activation_answers_the_same_bits(alone, activation):
    found = alone[0]
    assert found[f"pooled first, {activation}"] == 1
    assert found[f"pooled alike, {activation}"] is True
    assert found[f"slopes alike, {activation}"] < 1e-5


def test_pooling_first_stays_in_keras_files_and_in_16_bits(alone):
    found = alone[0]
    assert found["saved and pooled alike"] is True
    assert found["pooled in float16"] == ["float16", True]


def test_pooling_comes_first_where_nobody_else_reads_the_convolution(alone):
    found = alone[0]
    assert set(found["left as they are"].values()) == {0}
    assert found["pooled first within another"] == 1
    assert found["pooled first in VGG16"] == 5


def test_a_bias_before_a_normalisation_has_no_slope_and_all_else_stays(alone):
    found = alone[0]
    assert found["biases spared"] == 1
    assert found["spared alike"] is True
    assert found["spared in bfloat16"] is True
    assert found["moving mean alike"] is True
    ours, keras = found["slope of the bias"]
    assert ours == 0
    assert 0 < keras < 1e-5 * found["largest slope"], "rounding is all that Keras finds"
    assert found["slopes alike without"] <= 1e-5 * found["largest slope"]
    assert found["saved and spared alike"] is True


def test_biases_are_spared_where_a_mean_of_the_batch_takes_them_away(alone):
    found = alone[0]
    assert set(found["not spared"].values()) == {0}
    assert found["spared in ResNet50"] == 53


def test_a_step_is_compiled_for_the_batch_and_once_for_what_is_left(alone):
    found = alone[0]
    assert found["widths"] == [10, 2]
    assert found["widths apart"] < 1e-6


def test_layers_compute_in_16_bits_and_weights_stay_in_32(alone):
    found = alone[0]
    assert found["bfloat16 types"] == ["bfloat16", "float32"]
    assert found["float16 types"] == ["float16", "float32"]
    assert 1e-5 < found["float16"] < found["bfloat16"] < 1e-2


def test_a_larger_loss_keeps_gradients_that_float16_would_lose(alone):
    assert alone[0]["faint, scaled"] < 0.01
    assert alone[0]["faint, bare"] > 2 * alone[0]["faint, scaled"]


def test_the_batch_is_found_by_trial_and_ends_where_the_memory_does(alone):
    found, lines = alone
    told = [line for line in lines if line.startswith("batch sizes tried")]
    sizes = [[int(size) for size in re.findall(r"[ ](\d+) \(", line)] for line in told]
    assert sizes == [[16, 32, 64, 100], [16]]
    assert found["batch"] in sizes[0]
    assert found["batch without memory"] == 16
    assert "the limit is 100" in told[0]
    assert "a batch of 32 would need 2 GiB more than a batch of 16, but 0 bytes are available" in told[1]


def test_the_rate_of_two_ranks_is_scaled_and_warmed_up(together):
    assert [together[f"{how} rate"] for how in ("linear", "sqrt", "none")] == pytest.approx(
        [0.2, 0.1 * math.sqrt(2), 0.1]
    )
    first, second, third = together["warm-up rates"]
    assert 0.1 < first < 0.15 < second < third == pytest.approx(0.2)


@pytest.mark.parametrize("name", SHARED)
def test_two_ranks_come_to_the_weights_of_one_process_with_both_batches(together, name):
    assert together[name] < (2e-5 if name in ("lamb", "shared norms") else 2e-6), together


@pytest.mark.parametrize("name", SHARED)
def test_two_devices_come_to_the_weights_of_one_with_both_batches(mirrored, name):
    assert mirrored[name] < 2e-6, mirrored
    rates = mirrored[f"{name} rates"]
    assert rates[:3] == pytest.approx(rates[3:])
    assert mirrored["own norms"] > 1e-3


def test_gradients_that_are_sent_as_float16_are_rounded_to_it(together):
    assert together["plain"] < 2e-6 < 1e-5 < together["fp16"] < 2e-3


def test_norms_of_each_rank_lead_elsewhere_than_shared_ones_which_are_saved_as_keras_own(together):
    assert together["own norms"] > 1e-3
    assert together["layers"][1] == "BatchNormalization"


def test_memory_is_flat_and_tensorboard_says_what_the_metrics_say(train, inside):
    options = ("--epochs", "24", "--tensorboard", "--warmup-epochs", "2")
    more = ("--warmup-from", "0.0001", "--decay", "cosine", "--batch-size", "auto", "--batch-limit", "64")
    out, _ = train(*options, *more)
    header, epochs, _ = metrics(out)
    assert header["batch_size"] in (16, 32, 64)
    assert header["reference_batch"] == 32
    # The training writes a checkpoint after each epoch.
    assert epochs[-1]["memory_bytes"] - epochs[1]["memory_bytes"] < 12 * 2**20
    rates = [one["learning_rate"] for one in epochs]
    assert rates[0] < rates[1] < rates[2] > rates[3] > rates[-1]
    told = inside("python", "-c", READ_EVENTS, "/out/tensorboard", binds={out: "/out:ro"})
    seen = json.loads(told.lines[-1])
    for tag, name in (("learning_rate", "learning_rate"), ("loss/test", "test_loss"), ("loss/train", "loss")):
        assert seen[tag] == pytest.approx([one[name] for one in epochs], rel=1e-6)


def test_horovod_is_told_how_to_send_and_draws_what_each_message_did(train):
    slow, _ = train("--epochs", "2", "--timeline", "/out/timeline.json", "--cycle-ms", "20", ranks=2)
    options = ("--timeline", "/out/timeline.json", "--fusion-mb", "0.0001", "--cycle-ms", "1")
    apart, _ = train("--epochs", "2", *options, ranks=2)
    drawn, split = ((folder / "timeline.json").read_text() for folder in (slow, apart))
    assert "NEGOTIATE_ALLREDUCE" in drawn
    # Horovod copies gradients that it sends as one message into one buffer.
    assert "MEMCPY_IN_FUSION_BUFFER" in drawn
    assert "MEMCPY_IN_FUSION_BUFFER" not in split
    starts = [int(at) for at in re.findall(r'CYCLE_START", "ts": (\d+)', drawn)]
    between = sorted(after - before for before, after in pairwise(starts))
    assert between[len(between) // 2] > 18_000
    ours, theirs = (metrics(folder)[1][-1]["test_loss"] for folder in (slow, apart))
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_horovod_tunes_itself_and_writes_what_it_tried_and_a_long_epoch_has_lines(train):
    options = ("--autotune", "/out/autotune.csv", "--log-seconds", "0.001")
    out, lines = train("--epochs", "4", "--batch-size", "4", *options, ranks=2)
    header, *tried = (out / "autotune.csv").read_text().splitlines()
    assert "tensor_fusion_threshold" in header
    assert len({line.split(",")[4] for line in tried}) > 1, tried
    form = r"epoch 1/2  \d+%  loss \d\.\d{4}  [\d,]+ images/s  \d+ s left in this epoch"
    assert any(re.fullmatch(form, line) for line in lines), lines
