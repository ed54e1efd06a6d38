"""Average gradients over all ranks with MPI, in threads that run during the backward pass."""

import queue
import threading
import time
from typing import TYPE_CHECKING

from toolkit.trainers.ranks.fusion import is_delayed

if TYPE_CHECKING:
    import numpy
    from mpi4py.MPI import Comm


class GradientBuffer:
    """A buffer in which a thread replaces the gradients of this rank by their means over all ranks."""

    def __init__(self, buffer: "numpy.ndarray") -> None:
        self.buffer = buffer
        self._done = threading.Event()
        self._error: BaseException | None = None

    def average(self, comm: "Comm") -> None:
        """Replace the gradients by their means over the ranks of ``comm``. If MPI fails, store the error, so
        that :meth:`wait` raises it.
        """
        from mpi4py import MPI

        try:
            comm.Allreduce(MPI.IN_PLACE, self.buffer, MPI.SUM)
            self.buffer /= comm.Get_size()
        except BaseException as error:  # noqa: BLE001 - wait() raises the error again
            self._error = error
        self._done.set()

    def wait(self) -> "numpy.ndarray":
        """Wait until the buffer contains the means, and return the buffer. If MPI failed to average the
        gradients, raise MPI's error.
        """
        self._done.wait()
        if self._error:
            raise self._error
        return self.buffer


class AveragingThread:
    """A thread with a separate MPI communicator. The thread averages gradient buffers in the order of the
    calls of :meth:`submit`.

    All ranks must submit their buffers in the same order, so that the collective MPI calls of the ranks
    match.
    """

    def __init__(self, comm: "Comm") -> None:
        self._comm = comm
        self._buffers: queue.SimpleQueue[GradientBuffer | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def submit(self, buffer: "numpy.ndarray") -> GradientBuffer:
        """Queue a buffer for averaging, and return an object whose :meth:`~GradientBuffer.wait` returns the
        result.
        """
        pending = GradientBuffer(buffer)
        self._buffers.put(pending)
        return pending

    def end(self) -> None:
        """Stop the thread after its last buffer. All ranks must call this method."""
        self._buffers.put(None)
        self._thread.join()
        self._comm.Free()

    def _run(self) -> None:
        while pending := self._buffers.get():
            pending.average(self._comm)


class GradientBucket:
    """A group of gradients that ranks send as one message in each step."""

    def __init__(self, thread: AveragingThread, team: "Team") -> None:
        self._thread, self._team = thread, team
        self._steps = 0
        self._pending: GradientBuffer
        self._before: GradientBuffer | None = None

    def start(self, buffer: "numpy.ndarray") -> None:
        """Start averaging the gradients that this rank computed in a training step."""
        self._pending = self._thread.submit(buffer)

    def finish(self) -> "numpy.ndarray":
        """Return the mean gradients with which this step updates the model. Call :meth:`start` first.

        A delayed step uses the mean gradients of the previous step; the first delayed step uses zeros. The
        first synchronous step after delayed steps adds the mean gradients of this step and the previous step,
        so that no gradient is lost.
        """
        import numpy as np

        now, before = self._pending, self._before
        begun = time.perf_counter()
        if is_delayed(self._steps, self._team.ksteps, self._team.max_steps):
            self._before = now
            mean = before.wait() if before else np.zeros_like(now.buffer)
        else:
            self._before = None
            mean = now.wait() + before.wait() if before else now.wait()
        self._steps += 1
        self._team.count_wait(self, time.perf_counter() - begun, now.buffer.nbytes)
        return mean


class Team:
    """The threads that average the gradients of one model, and the schedule of delayed steps. A delayed step
    uses the gradients of the previous step.
    """

    def __init__(self, number: int, comms: "list[Comm]") -> None:
        self.number = number
        self.threads = [AveragingThread(comm) for comm in comms]
        self.ksteps = self.max_steps = 0
        self._freq = 0
        self.configured = False
        self._buckets: list[GradientBucket] = []
        self._steps, self._seconds, self._bytes = 0, 0.0, 0
        self._begun = time.perf_counter()

    def configure(self, ksteps: int, max_steps: int, freq: int) -> None:
        """Set which training steps are delayed (see :func:`.is_delayed`), and after how many steps (``freq``)
        this rank prints timing. If ``freq`` is 0, this rank never prints timing.
        """
        self.ksteps, self.max_steps, self._freq, self.configured = ksteps, max_steps, freq, True

    def add_bucket(self) -> GradientBucket:
        """Return a new bucket for gradients of the model. The team assigns its buckets to its threads in
        turn.
        """
        bucket = GradientBucket(self.threads[len(self._buckets) % len(self.threads)], self)
        self._buckets.append(bucket)
        return bucket

    def count_wait(self, bucket: GradientBucket, seconds: float, size: int) -> None:
        """Add ``seconds`` of waiting time and ``size`` sent bytes to the team's totals. Print the timing
        after every ``freq`` steps (see :meth:`configure`).
        """
        self._seconds += seconds
        self._bytes += size
        if bucket is not self._buckets[-1]:
            return
        self._steps += 1
        if self._freq and self._steps % self._freq == 0:
            now = time.perf_counter()
            print(
                f"team {self.number}: step {self._steps}, "
                f"{1e3 * (now - self._begun) / self._freq:.2f} ms a step, "
                f"including {1e3 * self._seconds / self._freq:.2f} ms of waiting for gradients, "
                f"{self._bytes / self._freq / 1e6:.2f} MB sent a step",
                flush=True,
            )
            self._begun, self._seconds, self._bytes = now, 0.0, 0

    def end(self) -> None:
        """Stop the team's threads."""
        for thread in self.threads:
            thread.end()
