"""Train a small network for 20 steps and print its weights; runs inside an image.

    python learner.py                       one process, with the whole of every batch
    mpirun -n 2 python learner.py           two ranks, each with its half of every batch

Rank 0 prints the result as one line of JSON: the size of the world, and the weights of every rank. At the
start, only rank 0 has the right weights. If the broadcast has no effect, the weights at the end are wrong.
"""

import importlib.util
import json
import sys

import numpy as np

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS = 20, 32, 16, 24, 4
RATE, MOMENTUM = 0.05, 0.9


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    examples = random.normal(size=(STEPS, BATCH, INPUTS)).astype("float32")
    truth = random.normal(size=(INPUTS, OUTPUTS)).astype("float32")
    return examples, np.tanh(examples @ truth)


def first_weights(rank: int) -> list[np.ndarray]:
    """Return the initial weights, which are right only on rank 0."""
    random = np.random.default_rng(11)
    shapes = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, OUTPUTS), (OUTPUTS,))
    return [(random.normal(size=shape) / 4 + rank).astype("float32") for shape in shapes]


def tensorflow() -> tuple[int, int, list[list[float]]]:
    import horovod.tensorflow as plain
    import horovod.tensorflow.keras as hvd
    from tensorflow import keras

    hvd.init()
    layers = [
        keras.layers.Dense(HIDDEN, activation="tanh", input_shape=(INPUTS,)),
        keras.layers.Dense(OUTPUTS),
    ]
    model = keras.Sequential(layers)
    model.set_weights(first_weights(hvd.rank()))
    plain.broadcast_variables(model.variables, root_rank=0)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(RATE, momentum=MOMENTUM))
    model.compile(optimizer=optimizer, loss="mse")
    for examples, wanted in zip(*data(), strict=True):
        model.train_on_batch(examples[hvd.rank() :: hvd.size()], wanted[hvd.rank() :: hvd.size()])
    mine = np.concatenate([weight.ravel() for weight in model.get_weights()])
    return hvd.rank(), hvd.size(), plain.allgather(mine[None]).numpy().tolist()


def torch() -> tuple[int, int, list[list[float]]]:
    import horovod.torch as hvd
    import torch as framework

    hvd.init()
    model = framework.nn.Sequential(
        framework.nn.Linear(INPUTS, HIDDEN), framework.nn.Tanh(), framework.nn.Linear(HIDDEN, OUTPUTS)
    )
    with framework.no_grad():
        for parameter, values in zip(model.parameters(), first_weights(hvd.rank()), strict=True):
            parameter.copy_(framework.from_numpy(values.T.copy()))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    plain = framework.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for examples, wanted in zip(*map(framework.from_numpy, data()), strict=True):
        mine = slice(hvd.rank(), None, hvd.size())
        optimizer.zero_grad()
        framework.nn.functional.mse_loss(model(examples[mine]), wanted[mine]).backward()
        optimizer.step()
    flat = framework.cat([parameter.detach().ravel() for parameter in model.parameters()])
    return hvd.rank(), hvd.size(), hvd.allgather(flat[None]).numpy().tolist()


def main() -> None:
    """Train with the framework in the image, and let rank 0 print the result."""
    learn = tensorflow if importlib.util.find_spec("tensorflow") else torch
    rank, size, weights = learn()
    if rank == 0:
        sys.stdout.write(f"LEARNED {json.dumps({'size': size, 'weights': weights})}\n")


if __name__ == "__main__":
    main()
