"""Read the GPU utilisation of a job from the output of ``nvidia-smi``, which the job script runs (pure
functions).
"""

from statistics import median


def median_use(content: bytes) -> float | None:
    """Return the median, from 0 to 1, of all utilisation values of all GPUs. Return ``None`` if ``content``
    has no utilisation values.

    A line of ``content`` has the fields ``time, index, utilisation in percent, MiB in use``. If a GPU does
    not report its utilisation, the field for the utilisation is ``[N/A]``. The last line of ``content`` may
    be truncated.

    >>> median_use(b"2026/11/26 05:00:00.000, 0, 90, 1024\\n2026/11/26 05:00:30.000, 0, 70, 1024\\n")
    0.8
    """
    cells = [line.split(",") for line in content.decode(errors="replace").splitlines()]
    uses = [int(line[2]) for line in cells if len(line) == 4 and line[2].strip().isdigit()]
    return median(uses) / 100 if uses else None
