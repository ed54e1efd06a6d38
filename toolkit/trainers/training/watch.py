"""Every few seconds of a training, check whether the user or Slurm requests a stop, and whether the next
checkpoint is due.

To request a stop, a job script creates the file ``stop-asked`` in the folder that TOOLKIT_JOB_DIR names,
because signals may not reach a process inside a container. SIGTERM or SIGUSR1 to any rank also requests a
stop.
"""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from toolkit.trainers.ranks.world import World

STOP = "stop-asked"
RESTARTS = "restarts"
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_Handler = Callable[[int, FrameType | None], object] | int | None


@dataclass(frozen=True, slots=True)
class NextSteps:
    """What all ranks do next. If ``stop`` is true, they write a checkpoint and stop the training. If ``save``
    is true, they write a checkpoint. If they do not stop, they then make ``steps`` training steps.
    """

    stop: bool
    save: bool
    steps: int


def stop_file(environment: Mapping[str, str], output: Path) -> Path:
    """Return the path of the file that requests a stop. The file is in the job's folder or, without a job
    folder, in the output folder.
    """
    return Path(environment.get("TOOLKIT_JOB_DIR") or output) / STOP


def was_restarted(environment: Mapping[str, str]) -> bool:
    """Return whether Slurm or the job script restarted the job. Slurm counts restarts in a variable. The job
    script counts them in the file ``restarts`` in the job's folder.
    """
    count = environment.get("SLURM_RESTART_COUNT", "")
    folder = environment.get("TOOLKIT_JOB_DIR")
    return count.strip("0").isdecimal() or bool(folder and (Path(folder) / RESTARTS).exists())


def name_job(environment: Mapping[str, str]) -> str:
    """Return a name that is the same for all runs of a job, even after Slurm restarted the job. The name is
    the job's folder or, without a job folder, Slurm's job ID. Outside a job, return an empty string.
    """
    return environment.get("TOOLKIT_JOB_DIR") or environment.get("SLURM_JOB_ID", "")


class Watch:
    """Decides for all ranks whether the training continues. As a context manager, ``Watch`` installs handlers
    for the signals that request a stop.
    """

    def __init__(self, world: World, seconds: float, file: Path) -> None:
        """Store the arguments. ``seconds`` is the time between two checkpoints. The user or the job script
        requests a stop by creating ``file``.
        """
        self._world, self._seconds, self._file = world, seconds, file
        self._asked = False
        self._saved = time.monotonic()
        self._before: dict[signal.Signals, _Handler] = {}

    def look(self, steps: int) -> NextSteps:
        """Return the next action of all ranks. Rank 0 decides for all ranks, but a signal to any other rank
        also requests a stop. ``steps`` is the number of training steps that this rank proposes; only rank 0's
        proposal counts.
        """
        stop, save = self._asked, False
        if self._world.rank == 0:
            stop = stop or self._file.exists()
            save = time.monotonic() - self._saved >= self._seconds
        told = self._world.total([stop, save, steps if self._world.rank == 0 else 0])
        return NextSteps(bool(told[0]), bool(told[1]), int(told[2]))

    def saved(self) -> None:
        """Restart the countdown to the next checkpoint. Call this method after writing a checkpoint."""
        self._saved = time.monotonic()

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, *_: object) -> None:
        self._asked = True
