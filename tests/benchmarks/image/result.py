"""The measurements of a run, and the ratios of packings to plain ``apptainer build``."""

from typing import Any

import msgspec

from tests.benchmarks.image.builds import Builds
from tests.benchmarks.image.conversions import PLAIN
from tests.benchmarks.image.starts import BARE
from tests.benchmarks.image.timed import Taken, median
from toolkit.image.sifs.packing import DEFAULT


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Results of one run. Sizes are in bytes.

    ``program`` is the Python statement whose start is timed. ``starts`` has the times by the name of the SIF,
    and then by ``cold`` or ``warm``.
    """

    schema: str = "toolkit.bench.image/1"
    image: str
    program: str
    started: str
    processors: int
    image_bytes: int
    sizes: dict[str, int]
    same_bytes: dict[str, bool]
    conversions: dict[str, list[Taken]]
    starts: dict[str, dict[str, list[Taken]]]
    builds: Builds

    def ratios(self, name: str) -> dict[str, float]:
        """Compare a packing with plain ``apptainer build``.

        ``start_ratio`` and ``start_ratio_cpu`` compare with ``bare``, a start without a SIF.
        """
        warm = median(self.starts[name]["warm"])
        bare, plain = median(self.starts[BARE]["warm"]), median(self.starts[PLAIN]["warm"])
        took = median(self.conversions[name]).wall
        return {
            "conversion_ratio": round(median(self.conversions[PLAIN]).wall / took, 2),
            "sif_size_ratio": round(self.sizes[name] / self.sizes[PLAIN], 4),
            "start_ratio": round(warm.wall / bare.wall, 2),
            "start_ratio_cpu": round(warm.cpu / bare.cpu, 2),
            "start_to_plain_ratio": round(warm.wall / plain.wall, 2),
        }

    def encoded(self) -> bytes:
        names = [name for name in self.sizes if name != PLAIN]
        head: dict[str, Any] = {
            "schema": self.schema,
            **self.ratios(DEFAULT.name),
            "image_bytes": self.image_bytes,
            "sif_bytes": self.sizes[DEFAULT.name],
            "reproducible": all(self.same_bytes.values()),
            "packings": {name: self.ratios(name) for name in names},
            "raw": msgspec.to_builtins(self),
        }
        return msgspec.json.format(msgspec.json.encode(head), indent=2)
