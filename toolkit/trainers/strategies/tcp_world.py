"""The base class of the strategies whose ranks connect without MPI, through
:mod:`toolkit.trainers.ranks.tcp_group`.
"""

import io
import os
import pickle
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from toolkit.trainers.ranks.peers import find_place
from toolkit.trainers.ranks.tcp_group import TcpGroup
from toolkit.trainers.ranks.world import WAIT_TO_BE_ENDED, World
from toolkit.trainers.trouble import Trouble

if TYPE_CHECKING:
    import tensorflow as tf

T = TypeVar("T")

_TIME_TO_NOTICE = 2.0
"""The number of seconds within which the TCP group detects a lost rank (a rank whose process or node
failed).
"""


class TcpWorld(World):
    """Ranks that exchange values over TCP. Each rank has a connection to rank 0."""

    def __init__(self, strategy: str) -> None:
        """Connect to the other ranks.

        Raises:
            Trouble: if the launcher's environment variables do not identify the other ranks, or the other
                ranks cannot be reached.
        """
        place = find_place(os.environ, strategy)
        self.group = TcpGroup(place)
        self.rank, self.size = place.rank, place.size
        self.members = self.group.members
        hosts = [one.host for one in self.members]
        self.local_rank = hosts[: self.rank].count(place.host)
        self.local_size, self.nodes = hosts.count(place.host), len(set(hosts))
        self.versions = {}
        # With no_grpc_proxy, messages between ranks do not go through the proxy in the user's environment.
        addresses = ",".join({one.address for one in self.members})
        os.environ["no_grpc_proxy"] = addresses  # noqa: SIM112 - gRPC's name is in lower case

    def refuse(self, trouble: Trouble) -> NoReturn:
        """Stop all ranks because of a fault that every rank has found. Rank 0 raises ``trouble``, so that
        the trainer reports the fault once. The other ranks exit without a message.
        """
        if self.rank:
            time.sleep(WAIT_TO_BE_ENDED)
            os._exit(trouble.code)
        self.group.dismiss(trouble.code)
        raise trouble

    def failing(self, error: Exception) -> None:
        # TensorFlow may notice a lost rank before the TCP group does.
        # Wait until the TCP group reports the lost rank and exits this process.
        if type(error).__module__.startswith("tensorflow") and self.group.over.wait(_TIME_TO_NOTICE):
            time.sleep(WAIT_TO_BE_ENDED)

    def broadcast(self, variables: "Sequence[tf.Variable]") -> None:
        values = [self.value(one) for one in variables] if self.rank == 0 else []
        arrays = unpack_arrays(self.group.broadcast(pack_arrays(values)))
        if self.rank:
            for variable, array in zip(variables, arrays, strict=True):
                self.put(variable, array)

    def total(self, values: Sequence[float]) -> list[float]:
        form = struct.Struct(f"{len(values)}d")
        every = [form.unpack(one) for one in self.group.gather(form.pack(*map(float, values)))]
        return [sum(column) for column in zip(*every, strict=True)]

    def tell(self, value: T) -> T:
        # unpickle() accepts only certain classes. Python's unpickler would let a sender call any function.
        told: T = unpickle(self.group.broadcast(pickle.dumps(value) if self.rank == 0 else b""))
        return told

    def gather(self, value: T) -> list[T]:
        return [unpickle(one) for one in self.group.gather(pickle.dumps(value))]

    def leave(self, code: int) -> NoReturn:
        # Wait for all ranks, because TensorFlow aborts a rank if it loses the connection to another rank.
        self.group.gather(b"")
        self.group.end()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def abort(self, code: int) -> NoReturn:
        self.group.fail(code)


class _Loader(pickle.Unpickler):
    """An unpickler that accepts only built-in values and the data classes of the trainers.

    With Python's standard unpickler, any process that reaches the port of rank 0 could make this process call
    any function.
    """

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in pickle
        if module.startswith("toolkit.trainers.") and module in sys.modules and "." not in name:
            found = vars(sys.modules[module]).get(name)
            if isinstance(found, type) and is_dataclass(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a type that ranks exchange")


def unpickle(value: bytes) -> Any:  # noqa: ANN401 - any value of another rank
    """Return the value that another rank pickled. Raise ``UnpicklingError`` if the value has a class that
    :class:`_Loader` refuses.
    """
    return _Loader(io.BytesIO(value)).load()


def pack_arrays(arrays: "Sequence[Any]") -> bytes:
    """Return the bytes of the arrays in NumPy's file format, one array after another."""
    import numpy as np

    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def unpack_arrays(value: bytes) -> "list[Any]":
    """Return the arrays that :func:`pack_arrays` packed in ``value``."""
    import numpy as np

    stream, arrays = io.BytesIO(value), []
    while stream.tell() < len(value):
        arrays.append(np.load(stream, allow_pickle=False))
    return arrays
