"""How busy the GPUs of a job were: the file that its script has ``nvidia-smi`` write; pure."""

from statistics import median


def median_use(content: bytes) -> float | None:
    """Return the median use of all GPUs and samples as a part of 1; ``None`` if the file has no figure.

    A line holds ``time, index, use in percent, MiB in use``. A GPU without this figure reports ``[N/A]``. The
    last line may be cut short.

    >>> median_use(b"2026/11/26 05:00:00.000, 0, 90, 1024\\n2026/11/26 05:00:30.000, 0, 70, 1024\\n")
    0.8
    """
    cells = [line.split(",") for line in content.decode(errors="replace").splitlines()]
    uses = [int(line[2]) for line in cells if len(line) == 4 and line[2].strip().isdigit()]
    return median(uses) / 100 if uses else None
