"""Test single statements that ``toolkit adapt`` changes, and its notes about unchanged statements."""

# ruff: noqa: E501 - a statement and its change in one line

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.job.adapt import adapt

KERAS = """import numpy as np
from tensorflow import keras
x, y = np.load("x.npy"), np.load("y.npy")
model = keras.Sequential([keras.layers.Dense(1)])
"""
TORCH = """import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
STEP = """    for x in loader:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
"""


@pytest.fixture
def adapted(tmp_path):
    def run(text, program=None):
        path = tmp_path / "train.py"
        path.write_text(text)
        result, content = adapt(path, program)
        return result, content.decode()

    return run


FIT = "model.fit(x, y, epochs=2)\n"


@every_row(
    ("line", "wanted"),
    [
        ("model.compile('SGD', loss='mse')", "model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01 * hvd.size()))"),
        ("model.compile(loss='mse')", "optimizer=hvd.DistributedOptimizer(keras.optimizers.RMSprop(0.001 * hvd.size()))"),
        ("model.compile(optimizer=name, loss='mse')", "hvd.DistributedOptimizer(keras.optimizers.get(name))"),
        ("model.compile(keras.optimizers.Adam(), loss='mse')", "Adam(learning_rate=0.001 * hvd.size())"),
        ("model.compile(keras.optimizers.Adam(lr=a + b), loss='mse')", "Adam(lr=(a + b) * hvd.size())"),
        ("model.compile(keras.optimizers.Adam(1e-3 if a else b), loss='mse')", "Adam((1e-3 if a else b) * hvd.size())"),
    ],
)  # fmt: skip
def test_the_optimizer_is_wrapped_and_its_rate_multiplied(adapted, line, wanted):
    assert wanted in adapted(f"{KERAS}{line}\n{FIT}")[1]


@every_row(
    ("line", "wanted"),
    [
        ("model.fit(x, y, verbose=0, epochs=1)", "verbose=0, epochs=1"),
        ("model.fit(x, y, epochs=1, verbose=a)", "verbose=a if hvd.rank() == 0 else 0"),
        ("model.fit(x=x, y=y, epochs=1)", "model.fit(x=shard(x), y=shard(y), epochs=1"),
        ("model.fit([x, x], y, sample_weight=w, epochs=1)", "model.fit(shard([x, x]), shard(y), sample_weight=shard(w)"),
        ("model.fit(x, y, callbacks=[], epochs=1)", "callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)"),
        ("model.fit(x, y, callbacks=made(), epochs=1)", "hvd.callbacks.MetricAverageCallback(), *(made())]"),
        ("model.fit(gen.flow(x, y), epochs=1)", "steps_per_epoch=len(gen.flow(x, y)) // hvd.size()"),
        ("model.fit(gen.flow(x, y), steps_per_epoch=n + 1, epochs=1)", "steps_per_epoch=(n + 1) // hvd.size()"),
    ],
)  # fmt: skip
def test_fit_trains_on_a_part(adapted, line, wanted):
    assert wanted in adapted(f"{KERAS}model.compile('adam', loss='mse')\n{line}\n")[1]


@every_row(
    ("line", "wanted"),
    [
        ("model.fit(unknown(), epochs=1)", "line 6: adapt does not know what `unknown()` is"),
        ("model.compile(optimizer=name, loss='mse')", "line 6: optimizer `name`: multiply its learning rate"),
        ("a = 1; model.save('m.keras')", "line 6: `model.save('m.keras')` runs on every rank: the call shares its line"),
        ("cb = keras.callbacks.LearningRateScheduler(f)\nmodel.fit(x, y, callbacks=[cb])",
         "line 6: LearningRateScheduler sets the learning rate"),
        ("model.fit(x, y, callbacks=[keras.callbacks.BackupAndRestore('b')])", "BackupAndRestore: give each rank its own backup folder"),
        ("with open('a', 'w') as f:\n    f.write(model.fit(x, y))", "all ranks may need"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_named_with_its_line(adapted, line, wanted):
    result, _ = adapted(f"{KERAS}model.compile('adam', loss='mse')\n{line}\n{FIT}")
    assert any(wanted in f"line {one.line}: {one.what}" for one in result.left)


def test_a_statement_that_shares_its_line_stays(adapted):
    _, text = adapted(f"{KERAS}model.compile('adam', loss='mse')\n{FIT}print(1); model.save('m')\n")
    assert "\nprint(1); model.save('m')\n" in text


def test_strings_of_several_lines_keep_their_indentation(adapted):
    _, text = adapted(f'{KERAS}model.compile("adam", loss="mse")\n{FIT}print("""a\n  b\n""", "é", x)\n')
    assert 'if hvd.rank() == 0:\n    print("""a\n  b\n""", "é", x)\n' in text


def test_columns_of_other_letters_are_characters(adapted):
    _, text = adapted(f"{KERAS}model.compile(**{{'é': 1}}, optimizer='adam', loss='mse')\n{FIT}")
    assert "**{'é': 1}, optimizer=hvd.DistributedOptimizer(" in text


def test_names_of_the_script_are_not_taken(adapted):
    _, text = adapted(f"{KERAS}hvd = gpus = shard = 1\nmodel.compile('adam', loss='mse')\n{FIT}")
    assert "import horovod.tensorflow.keras as hvd_" in text
    assert "def shard_(data):" in text
    assert "model.fit(shard_(x), shard_(y)" in text


def test_validation_data_stay_whole_where_both_come_from_one_source(adapted):
    text = """import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices(([1], [2]))
train, test = data.skip(1).batch(2), data.take(1).batch(2)
model = tf.keras.Sequential()
model.compile("adam", loss="mse")
model.fit(train, epochs=1, validation_data=test)
"""
    _, made = adapted(text)
    assert "model.fit(shard_dataset(train), epochs=1, validation_data=test" in made
    assert "data = tf.data.Dataset.from_tensor_slices(([1], [2]))\n" in made


def test_a_strategy_multiplies_the_batch_and_keeps_the_files_of_rank_0(adapted):
    text = (
        f"{KERAS}model.compile('adam', loss='mse')\nmodel.fit(x, y, batch_size=8)\nmodel.save('a/m.keras')\n"
    )
    result, made = adapted(text, "tf-config")
    assert result.program == "tf-config"
    assert "batch_size=8 * strategy.num_replicas_in_sync" in made
    assert "\nmodel.save(own('a/m.keras'))\n" in made
    assert "tf.distribute.experimental_set_strategy(strategy)" in made
    assert "horovod" not in made


@every_row(("program", "noted"), [("horovod", True), ("tf-config", False)])
def test_only_horovod_cannot_be_compiled_by_xla(adapted, program, noted):
    result, _ = adapted(f"{KERAS}model.compile('SGD', loss='mse', jit_compile=True)\n{FIT}", program)
    assert any("jit_compile" in one.what for one in result.left) == noted


def test_keras_3_needs_a_patched_horovod_and_has_no_strategy(adapted):
    text = f"import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\n{KERAS}model.compile('adam', loss='mse')\n{FIT}"
    result, _ = adapted(text)
    assert result.program == "horovod"
    assert any("Keras 3: Horovod needs an image" in one.what and one.line == 2 for one in result.left)
    with pytest.raises(BadInput, match="Keras 3 does not work with MultiWorkerMirroredStrategy"):
        adapted(text, "tf-config")


@every_row(
    ("loader", "wanted"),
    [
        ("DataLoader(d, 8, shuffle=True)", "DataLoader(d, 8, sampler=DistributedSampler(d))"),
        ("DataLoader(d, 8, shuffle=flag)", "sampler=DistributedSampler(d) if flag else None"),
        ("DataLoader(d, 8)", "DataLoader(d, 8, sampler=DistributedSampler(d, shuffle=False))"),
        ("DataLoader(dataset=make(), shuffle=True)", "train_set = make()\nloader = DataLoader(dataset=train_set, sampler="),
        ("DataLoader(d, **more)", '**{**more, "sampler": DistributedSampler(d), "shuffle": None}'),
        ("DataLoader(\n    d,\n    batch_size=8,  # small\n)", "batch_size=8,  # small\n    sampler=DistributedSampler(d, shuffle=False),\n)"),
    ],
)  # fmt: skip
def test_a_loader_gets_a_sampler(adapted, loader, wanted):
    text = f"{TORCH}loader = {loader}\nfor _ in range(3):\n{STEP}"
    result, made = adapted(text)
    assert wanted in made
    assert "for epoch in range(3):\n    loader.sampler.set_epoch(epoch)\n" in made
    assert "net = DistributedDataParallel(net)\n" in made
    assert "lr=0.1 * dist.get_world_size()" in made
    assert made.endswith("dist.destroy_process_group()\n")
    assert not result.left


@every_row(
    ("before", "loader", "wanted"),
    [
        ("", "DataLoader(d, sampler=s)", "change the argument `sampler` so that each rank gets its part"),
        ("", "DataLoader(d, 8, True)", "change the arguments so that each rank gets its part"),
        (
            "class D(torch.utils.data.IterableDataset):\n    pass\nd = D()\n",
            "DataLoader(d)",
            "is an IterableDataset",
        ),
        ("", "streamed()", "does not know where `loader` takes its batches from"),
        ("net2 = torch.nn.DataParallel(net)\n", "DataLoader(d)", "remove DataParallel"),
        ("import wandb\nwandb.init()\n", "DataLoader(d)", "starts a run on every rank"),
    ],
)
def test_a_loader_that_is_not_understood_is_named(adapted, before, loader, wanted):
    result, _ = adapted(f"{TORCH}{before}loader = {loader}\nfor _ in range(3):\n{STEP}")
    assert any(wanted in one.what for one in result.left)


def test_a_break_has_to_be_taken_by_all_ranks(adapted):
    text = f"{TORCH}loader = DataLoader(d)\nfor _ in range(3):\n{STEP}    if bad():\n        break\n"
    result, _ = adapted(text)
    assert [(one.line, one.what[:40]) for one in result.left] == [
        (12, "`break`: all ranks have to leave the loo")
    ]


def test_the_model_inside_is_reached_where_ddp_has_no_such_attribute(adapted):
    text = f"{TORCH}loader = DataLoader(d)\nfor _ in range(3):\n{STEP}net.load_state_dict(s)\nprint(net.in_features)\nnet.eval()\n"
    _, made = adapted(text)
    assert "net.module.load_state_dict(s)" in made
    assert "print(net.module.in_features)" in made
    assert "\nnet.eval()\n" in made


def test_a_parameter_that_gets_both_models_works_with_both(adapted):
    text = f"""{TORCH}other = torch.nn.Linear(1, 1)
def describe(model):
    return model.in_features
loader = DataLoader(d)
for _ in range(3):
{STEP}describe(net)
describe(other)
"""
    assert 'return getattr(model, "module", model).in_features' in adapted(text)[1]


def test_a_file_of_rank_0_is_read_after_all_have_waited(adapted):
    text = f"{TORCH}loader = DataLoader(d)\nfor _ in range(3):\n{STEP}torch.save(net, 'n')\nnet = torch.load('n')\n"
    assert "    torch.save(net.module, 'n')\ndist.barrier()\nnet = torch.load('n')\n" in adapted(text)[1]


@every_row(
    ("text", "wanted"),
    [
        ("print(1)\n", "neither Keras nor PyTorch"),
        ("import jax\njax.grad(f)\n", "neither Keras nor PyTorch"),
        ("import torch\nprint(torch.ones(1))\n", "toolkit found no training"),
        ("import torch\nprint(\n", "was never closed"),
        ("import torch; x = 1\nx.backward()\n", "does not start with imports on separate lines"),
    ],
)
def test_other_files_are_refused(adapted, text, wanted):
    with pytest.raises(BadInput, match=wanted) as error:
        adapted(text)
    assert error.value.fix
    assert "train.py" in error.value.message


def test_a_loop_with_a_tape_needs_horovod(adapted):
    text = """import tensorflow as tf
for x in data:
    with tf.GradientTape() as tape:
        loss = f(x)
    opt.apply_gradients(zip(tape.gradient(loss, m.trainable_variables), m.trainable_variables))
"""
    with pytest.raises(BadInput, match="GradientTape"):
        adapted(text, "tf-config")


def test_files_of_the_project_are_named_and_not_changed(adapted, tmp_path):
    (tmp_path / "data.py").write_text("from torch.utils.data import DataLoader\nloader = DataLoader([1])\n")
    result, _ = adapted(f"from data import loader\n{TORCH}for _ in range(3):\n{STEP}")
    assert "data.py, line 2: `DataLoader` is in a file that `toolkit adapt` does not change" in [
        o.what for o in result.left
    ]


def test_bars_of_progress_are_shown_on_rank_0(adapted):
    loop = STEP.replace("in loader", "in tqdm(loader)")
    _, made = adapted(f"from tqdm import tqdm\n{TORCH}loader = DataLoader(d)\nfor e in range(3):\n{loop}")
    assert (
        "    loader.sampler.set_epoch(e)\n    for x in tqdm(loader, disable=dist.get_rank() != 0):\n" in made
    )
