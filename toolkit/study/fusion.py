"""Add up the sizes and times of Horovod's fused allreduces (pure functions)."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Fusion:
    """Sums over the reductions in a timeline. Horovod fuses one or several tensors into each reduction.

    ``groups`` is the number of reductions, and ``tensors`` is the number of reduced tensors. ``size_sum`` is
    the total size in bytes, and ``time_sum`` is the total time in microseconds. ``size_square`` is the sum of
    the squared sizes. ``size_time`` is the sum of each reduction's size multiplied by its time.

    Several tensors belong to the same reduction if all their allreduces begin before the first of these
    allreduces ends.
    """

    groups: int = 0
    tensors: int = 0
    size_sum: float = 0.0
    time_sum: float = 0.0
    size_square: float = 0.0
    size_time: float = 0.0
    _begun: float = 0.0
    _pids: list[int] = field(default_factory=list)
    _open: bool = False
    _time: float = 0.0
    _sizes: dict[int, int] = field(default_factory=dict)

    def begin(self, pid: int, ts: float) -> None:
        if not self._open:
            self._close()
            self._begun, self._open = ts, True
        self._pids.append(pid)

    def end(self, ts: float) -> None:
        if self._open:
            self._time, self._open = ts - self._begun, False

    def size(self, pid: int, size: int) -> None:
        """Record the size of a tensor in bytes, which the timeline reports at the end of the allreduce."""
        self._sizes[pid] = size

    def _close(self) -> None:
        """Add the previous reduction to the sums when the next reduction begins. The sizes of all tensors in
        the previous reduction are then known.
        """
        size = sum(self._sizes.get(pid, 0) for pid in self._pids)
        # Ignore an unfinished reduction, and a reduction whose size is unknown.
        if self._pids and self._time > 0 and size > 0:
            self.groups += 1
            self.tensors += len(self._pids)
            self.size_sum += size
            self.time_sum += self._time
            self.size_square += size * size
            self.size_time += size * self._time
        self._pids, self._time = [], 0.0

    def line(self) -> tuple[float, float] | None:
        """Fit a straight line to the time of the reductions as a function of their size. Return the fixed
        time of a reduction and the time per byte, both in microseconds.

        The result is ``None`` for fewer than three reductions, for reductions of nearly the same size, or if
        larger reductions do not take longer.
        """
        if self.groups < 3:
            return None
        mean_size, mean_time = self.size_sum / self.groups, self.time_sum / self.groups
        spread = self.size_square / self.groups - mean_size**2
        if spread <= (0.05 * mean_size) ** 2:
            return None
        slope = (self.size_time / self.groups - mean_size * mean_time) / spread
        start = mean_time - slope * mean_size
        return (max(start, 0.0), slope) if slope > 0 else None
