"""Average gradients over all ranks with MPI, through the interface of Cray's plugin for machine learning.

    from toolkit.trainers.ranks import aggregate as mc
    mc.init_mpi()                                       # required before mc.get_rank() and mc.get_nranks()
    model = …
    mc.init(1, 1, model.count_params(), "tensorflow")   # threads per team, teams, parameters of the model
    mc.config_team(0, 0, steps, steps, 2, 100)          # all steps synchronous; print timing every 100 steps
    for variable, value in zip(model.variables, mc.broadcast(model.variables, 0)):
        variable.assign(value)
    …
    gradients = mc.gradients(tape.gradient(loss, model.trainable_variables), 0)
    …
    mc.finalize()

The functions have the same names as the functions of Cray's plugin, but use no code of the plugin (see
docs/aggregate.md). All ranks must make the same calls in the same order. Threads send gradients in groups of
about 4 MB (buckets) during the backward pass.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.trainers.ranks.fusion import buckets, split
from toolkit.trainers.ranks.team import GradientBucket, Team
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import numpy
    import tensorflow as tf
    from mpi4py.MPI import Comm


class _State:
    """The module's state between ``init_mpi`` and ``finalize``."""

    comm: "Comm | None" = None
    teams: tuple[Team, ...] = ()
    elements = 0


_state = _State()


def init_mpi() -> None:
    """Start MPI, unless another part of this process has started MPI before.

    Raises:
        Trouble: if mpi4py is missing, or MPI runs without MPI_THREAD_MULTIPLE.
    """
    # Let a thread that waits for messages yield its core. By default, a waiting thread of Open MPI checks for
    # messages without a pause, which leaves less CPU time for the training.
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise Trouble(f"mpi4py cannot be loaded: {error}", code=3) from None
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise Trouble(
            "MPI runs without MPI_THREAD_MULTIPLE; call init_mpi before other code starts MPI, or use an MPI "
            "library that supports MPI_THREAD_MULTIPLE",
            code=1,
        )
    _state.comm = _state.comm or MPI.COMM_WORLD.Dup()


def init(threads: int, teams: int, elements: int, framework: str = "tensorflow") -> None:
    """Start ``teams`` teams of ``threads`` threads each. Each team averages the gradients of one model, which
    may have up to ``elements`` parameters.

    Raises:
        Trouble: if ``init`` was already called, a number is below 1, or the framework is not TensorFlow.
    """
    comm = communicator()
    if _state.teams:
        raise Trouble("init was already called; call finalize first")
    if min(threads, teams, elements) < 1 or framework != "tensorflow":
        raise Trouble(
            f"init({threads}, {teams}, {elements}, {framework!r}): the numbers must be at least 1, and the "
            "framework must be 'tensorflow'"
        )
    _state.elements = elements
    _state.teams = tuple(Team(number, [comm.Dup() for _ in range(threads)]) for number in range(teams))


def config_team(
    team: int, transition: int, ksteps: int, max_steps: int, verbosity: int = 0, perf_freq: int = 0
) -> None:
    """Set which training steps of a team are synchronous. A synchronous step updates the model with the
    gradients of the same step.

    The first ``ksteps`` of the team's ``max_steps`` steps are synchronous. Each later step uses the gradients
    of the previous step. Threads send these gradients while TensorFlow computes the next gradients. If
    ``ksteps`` is negative, the last ``-ksteps`` steps are synchronous instead. ``transition`` must be 0. If
    ``verbosity`` is 1 or more, rank 0 prints timing every ``perf_freq`` steps. If ``verbosity`` is 2 or more,
    rank 0 also prints the schedule.

    Raises:
        Trouble: if the team does not exist, or ``transition`` or ``ksteps`` has an invalid value.
    """
    if transition or abs(ksteps) > max_steps:
        raise Trouble(
            f"config_team({team}, {transition}, {ksteps}, {max_steps}, …): transition must be 0, and ksteps "
            f"must be between -{max_steps} and {max_steps}"
        )
    speaks = get_rank() == 0 and verbosity > 0
    _team(team).configure(ksteps, max_steps, perf_freq if speaks else 0)
    if speaks and verbosity > 1:
        synchronous = f"the {'first' if ksteps >= 0 else 'last'} {abs(ksteps)} of {max_steps} steps"
        print(f"team {team}: {get_nranks()} ranks, {synchronous} synchronous", flush=True)


def get_rank() -> int:
    """Return the rank of this process."""
    rank: int = communicator().Get_rank()
    return rank


def get_nranks() -> int:
    """Return the number of ranks."""
    size: int = communicator().Get_size()
    return size


def barrier() -> None:
    """Wait until all ranks have called this function."""
    communicator().Barrier()


def rank_directory(base: str | Path) -> Path:
    """Create and return a folder for this rank below ``base``, so that ranks do not overwrite each other's
    files.
    """
    folder = Path(base) / f"rank-{get_rank():04}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def broadcast(variables: "Sequence[Any]", root: int = 0) -> "list[numpy.ndarray]":
    """Send the values of variables or arrays from the rank ``root`` to all ranks, and return these values."""
    import numpy as np

    comm = communicator()
    values = []
    for variable in variables:
        value = np.array(variable.numpy() if hasattr(variable, "numpy") else variable, order="C")
        # Send bytes, because MPI has no type for half precision or strings.
        comm.Bcast(value.reshape(-1).view(np.uint8), root)
        values.append(value)
    return values


def gradients(values: "Sequence[tf.Tensor]", team: int = 0) -> "list[tf.Tensor]":
    """Return the mean of each gradient over all ranks. The schedule that ``config_team`` set decides whether
    the step is synchronous. Call this function inside a TensorFlow graph.

    Raises:
        Trouble: if the team does not exist or is not configured, or if the gradients contain more numbers
            than the limit ``elements``, which the caller passed to :func:`init`.
    """
    import tensorflow as tf

    members = _team(team)
    if not members.configured:
        raise Trouble(f"team {team} is not configured; call config_team first")
    dense = [tf.convert_to_tensor(value) for value in values]
    sizes = [one.shape.num_elements() for one in dense]
    if sum(sizes) > _state.elements:
        raise Trouble(f"the gradients have {sum(sizes)} values, but init allows only {_state.elements}")
    plan = [
        (members.add_bucket(), numbers)
        for numbers in buckets(sizes, [_kind(one.dtype.name) for one in dense])
    ]
    # Send all buckets before waiting for the first bucket, because a waiting thread cannot send.
    sent = [_send_bucket(bucket, [dense[number] for number in numbers]) for bucket, numbers in plan]
    found: dict[int, tf.Tensor] = {}
    with tf.control_dependencies([one.op for one in sent] if not tf.executing_eagerly() else []):
        for bucket, numbers in plan:
            mean = tf.numpy_function(bucket.finish, [], _kind(dense[numbers[0]].dtype.name))
            for number, (start, stop) in zip(numbers, split(sizes[n] for n in numbers), strict=True):
                one = dense[number]
                found[number] = tf.cast(tf.reshape(mean[start:stop], one.shape), one.dtype)
    return [found[number] for number in range(len(dense))]


def average(array: "numpy.ndarray") -> None:
    """Replace the values of an array by their means over all ranks."""
    from mpi4py import MPI

    comm = communicator()
    comm.Allreduce(MPI.IN_PLACE, array, MPI.SUM)
    array /= comm.Get_size()


def check_buffers_match(arrays: "Sequence[numpy.ndarray]", verbosity: int = 0) -> int:
    """Return the number of arrays that are not bitwise equal on all ranks.

    If ``verbosity`` is not 0, rank 0 prints the indices of these arrays.
    """
    import numpy as np

    own = [hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for array in arrays]
    everyone = communicator().allgather(own)
    different = [number for number in range(len(own)) if len({one[number] for one in everyone}) > 1]
    if different and verbosity and get_rank() == 0:
        print(
            f"of {len(own)} arrays, these differ between ranks: {', '.join(map(str, different))}", flush=True
        )
    return len(different)


def finalize() -> None:
    """Wait until all teams have averaged their gradients, and stop the teams. All ranks must call this
    function. MPI itself runs until the process exits.
    """
    for team in _state.teams:
        team.end()
    _state.teams = ()
    if _state.comm:
        _state.comm.Free()
        _state.comm = None


def communicator() -> "Comm":
    """Return the MPI communicator of this module, which no other code uses.

    Raises:
        Trouble: if ``init_mpi`` was not called.
    """
    if _state.comm is None:
        raise Trouble("MPI is not started; call init_mpi first")
    return _state.comm


def _team(number: int) -> Team:
    if not 0 <= number < len(_state.teams):
        raise Trouble(f"team {number} does not exist: init started {len(_state.teams)} teams")
    return _state.teams[number]


def _kind(dtype: str) -> str:
    """Return the type in which MPI sends a gradient of the type ``dtype``: float64 for float64, or float32
    for all other types, such as half precision.
    """
    return dtype if dtype == "float64" else "float32"


def _send_bucket(bucket: GradientBucket, values: "list[tf.Tensor]") -> "tf.Tensor":
    import numpy as np
    import tensorflow as tf

    kind = _kind(values[0].dtype.name)

    def send(*arrays: "numpy.ndarray") -> "numpy.int32":
        bucket.start(np.concatenate([array.ravel() for array in arrays]).astype(kind, copy=False))
        return np.int32(0)

    return tf.numpy_function(send, values, tf.int32)
