"""Test that a trainer refuses options of another strategy, and options without effect."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.tables import every_row
from toolkit.trainers import cifar10, imagenet, imagenet_synthetic, mnist
from toolkit.trainers.command import parse, run
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.refusals import REFUSALS, find_framework_refusal, find_refusal
from toolkit.trainers.strategies import STRATEGIES

PLAIN = Learning(learning_rate=0.1)
PAGE = Path(__file__).parents[3] / "docs" / "strategies.md"
VALUES = {
    "--timeline": "t.json",
    "--autotune": "t.csv",
    "--fusion-mb": "1",
    "--cycle-ms": "1",
    "--devices": "2",
    "--servers": "1",
    "--ksteps": "1",
}


def verdict(strategy, words):
    trainer, options = parse(
        mnist.TRAINER, ["--data", "/d", "--output", "/o", "--strategy", strategy, *words]
    )
    tuning = options.tuning.apply(strategy, {})
    return (
        find_refusal(options.learning, strategy, trainer.learning.of_batch(options.batch_size or 32))
        or find_framework_refusal(trainer, options)
        or options.spread.misplaced(strategy)
        or (tuning.message if tuning else "")
    )


def rows():
    """Yield each option in docs/strategies.md's table, its arguments, and the table's text by strategy."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    start = next(n for n, line in enumerate(lines) if line.startswith("| option |"))
    names = [cell.strip(" `") for cell in lines[start].strip("|").split("|")][1:]
    assert set(names) == set(STRATEGIES)
    for line in lines[start + 2 :]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(names) + 1:
            return
        for option in re.findall(r"`(--[^`]+)`", cells[0]):
            flag, _, value = option.partition(" ")
            given = value or VALUES.get(flag, "")
            yield option, [flag, *[given] * bool(given)], dict(zip(names, cells[1:], strict=True))


@every_row(("option", "words", "told"), list(rows()), ids=lambda one: str(one)[:24])
def test_the_table_of_options_and_strategies_is_what_the_code_does(option, words, told):
    found = {strategy: "no" if verdict(strategy, words) else "yes" for strategy in told}
    assert found == told


def test_all_that_is_refused_is_in_the_table():
    named = {option for option, _, _ in rows()}
    assert {one.option for one in REFUSALS} <= named
    assert {*VALUES, "--sync", "--batch-size auto"} <= named


@every_row("one", REFUSALS, ids=lambda one: one.option)
def test_a_refusal_names_option_strategy_and_what_to_do(one):
    for strategy in STRATEGIES:
        said = find_refusal(replace(PLAIN, **{one.name: one.value}), strategy, PLAIN)
        refusing = {s for r in REFUSALS if (r.name, r.value) == (one.name, one.value) for s in r.strategies}
        assert bool(said) == (strategy in refusing)
        if said:
            assert said.startswith(f"{one.option} and --strategy {strategy}: ")
            assert "use " in said or "leave out the option" in said


@every_row(
    ("chosen", "said"),
    [
        ({"momentum": 0.5}, "--momentum: only for --optimizer sgd or lars, not for adam"),
        ({"nesterov": True, "optimizer": "lars"}, "--nesterov: only for --optimizer sgd, not for lars"),
        ({"momentum_correction": False}, "--momentum-correction: only for --optimizer sgd, not for adam"),
        ({"trust": 0.1, "optimizer": "lamb"}, "--trust: only for --optimizer lars, not for lamb"),
        ({"decay_at": (3.0,)}, "--decay-at: only for --decay step, not for constant"),
        ({"decay_factor": 0.5, "decay": "cosine"}, "--decay-factor: only for --decay step or exponential"),
        ({"decay_power": 3.0, "decay": "cosine"}, "--decay-power: only for --decay polynomial"),
        ({"decay_to": 0.1, "decay": "step"}, "--decay-to: only for --decay cosine or polynomial"),
        ({"reference_batch": 256, "scaling": "none"}, "--reference-batch: only for --scaling linear or sqrt"),
        ({"warmup_from": 0.1}, "--warmup-from needs a warm-up; add --warmup-epochs"),
        ({"sync_batch_norm": True, "xla": "on"}, "--xla on and --sync-batch-norm: cannot be combined"),
        (
            {"sync_batch_norm": True, "accumulate": 2},
            "--accumulate and --sync-batch-norm: cannot be combined",
        ),
    ],
)
def test_what_would_have_no_effect_is_told(chosen, said):
    assert find_refusal(replace(PLAIN, **chosen), "horovod", PLAIN).startswith(said)


@every_row(
    "chosen",
    [
        {"momentum": 0.5, "optimizer": "sgd", "nesterov": True, "momentum_correction": False},
        {"momentum": 0.5, "trust": 0.1, "optimizer": "lars"},
        {"decay_at": (3.0,), "decay_factor": 0.5, "decay": "step"},
        {"decay_power": 3.0, "decay_to": 0.1, "decay": "polynomial"},
        {"warmup_from": 0.1, "warmup_epochs": 5.0, "reference_batch": 256},
    ],
)
def test_what_has_an_effect_is_taken(chosen):
    assert find_refusal(replace(PLAIN, **chosen), "horovod", PLAIN) == ""


def test_a_default_of_the_trainer_is_nobodys_wish():
    other = replace(cifar10.TRAINER.learning, optimizer="adam", decay="constant")
    assert find_refusal(other, "single", cifar10.TRAINER.learning) == ""


def ended(trainer, capsys, *words):
    with pytest.raises(SystemExit) as end:
        run(trainer, ["--output", "/o", *words])
    told = capsys.readouterr().err
    assert (end.value.code, told.count("\n")) == (2, 1)
    return told


@every_row(
    ("words", "said"),
    [
        (("--strategy", "ps", "--xla", "on"), "mnist: --xla on and --strategy ps: "),
        (("--batch-limit", "64"), "mnist: --batch-limit: only for --batch-size auto, not for 32"),
        (("--trust", "0.1"), "mnist: --trust: only for --optimizer lars, not for adam"),
        (("--cycle-ms", "1", "--strategy", "single"), "mnist: --timeline, --autotune, --fusion-mb and"),
    ],
)
def test_a_refusal_is_one_line_and_status_2(words, said, capsys):
    assert ended(mnist.TRAINER, capsys, "--data", "/d", *words).startswith(said)


def test_what_a_measurement_has_no_use_for_is_no_option_of_it(capsys):
    for option in imagenet_synthetic.TRAINER.unused:
        with pytest.raises(SystemExit) as end:
            run(imagenet_synthetic.TRAINER, ["--output", "/o", option, "1"])
        assert end.value.code == 2
        assert f"unrecognized arguments: {option}" in capsys.readouterr().err


def test_a_size_that_a_small_network_does_not_see_is_refused(capsys):
    said = ended(cifar10.TRAINER, capsys, "--data", "/d", "--image-size", "128")
    assert said == (
        "cifar10: --image-size: only for models of keras.applications; resnet8 does not resize the images\n"
    )


def test_a_number_of_classes_beside_folders_of_them_is_refused(tmp_path, capsys):
    for name in ("cat", "dog"):
        (tmp_path / "train" / name).mkdir(parents=True)
    said = ended(imagenet.TRAINER, capsys, "--data", str(tmp_path), "--classes", "10")
    assert said == (
        f"imagenet: --classes: only for TFRecord files, but {tmp_path} has folders for 2 classes; "
        "leave out the option\n"
    )
