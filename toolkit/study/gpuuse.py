"""Read the GPU utilisation of a job from the file that ``nvidia-smi`` writes in its job script (pure)."""

from statistics import median


def median_use(content: bytes) -> float | None:
    """Return the median utilisation of all GPUs and samples, from 0 to 1, or None without a sample.

    A line of the file has the fields ``time, index, utilisation in percent, MiB in use``. A GPU without a
    utilisation has ``[N/A]``. The last line may be truncated.

    >>> median_use(b"2026/11/26 05:00:00.000, 0, 90, 1024\\n2026/11/26 05:00:30.000, 0, 70, 1024\\n")
    0.8
    """
    cells = [line.split(",") for line in content.decode(errors="replace").splitlines()]
    uses = [int(line[2]) for line in cells if len(line) == 4 and line[2].strip().isdigit()]
    return median(uses) / 100 if uses else None
