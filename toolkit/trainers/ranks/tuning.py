"""Command-line options for the size and timing of Horovod's messages. Horovod reads these settings from
environment variables.
"""

import argparse
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.trainers.trouble import Trouble
from toolkit.trainers.words import positive

USERS = ("horovod", "hybrid")
"""Strategies in which Horovod averages the gradients."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings for Horovod's messages. If a field is ``None``, :meth:`told` sets no variable for this field.

    ``fusion_mb`` is the largest size of a message in MiB. ``cycle_ms`` is the interval in ms at which Horovod
    looks for gradients to send. ``timeline`` and ``autotune`` are files that Horovod writes.
    """

    timeline: Path | None = None
    autotune: Path | None = None
    fusion_mb: float | None = None
    cycle_ms: float | None = None

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument_group("Horovod's messages").add_argument
        add(
            "--timeline",
            type=Path,
            metavar="FILE",
            help="write the waiting time of each message to FILE; open FILE in chrome://tracing",
        )
        add(
            "--autotune",
            type=Path,
            metavar="FILE",
            help=(
                "let Horovod find the fastest values of --fusion-mb and --cycle-ms by trial, and write the "
                "trials to FILE"
            ),
        )
        add(
            "--fusion-mb",
            type=positive,
            metavar="MIB",
            help=(
                "largest total size of the gradients in one message; default: 8 for the ImageNet trainers on "
                "nodes without GPUs, otherwise Horovod's default"
            ),
        )
        add(
            "--cycle-ms",
            type=positive,
            metavar="MS",
            help=(
                "interval at which Horovod looks for gradients to send; default: 5 for the ImageNet trainers "
                "on nodes without GPUs, otherwise 0.1"
            ),
        )

    @classmethod
    def taken(cls, options: dict[str, object]) -> "Tuning":
        """Remove the options of this class from the parsed command-line options, and return the removed
        options.
        """
        return cls(**{name: options.pop(name) for name in cls.__slots__})  # type: ignore[arg-type]

    def told(self) -> dict[str, str]:
        """Return the environment variables from which Horovod reads these settings when it starts."""
        found = {}
        if self.timeline:
            found["HOROVOD_TIMELINE"] = str(self.timeline)
            found["HOROVOD_TIMELINE_MARK_CYCLES"] = "1"
        if self.autotune:
            found |= {"HOROVOD_AUTOTUNE": "1", "HOROVOD_AUTOTUNE_LOG": str(self.autotune)}
        if self.fusion_mb:
            found["HOROVOD_FUSION_THRESHOLD"] = str(round(self.fusion_mb * 2**20))
        if self.cycle_ms:
            found["HOROVOD_CYCLE_TIME"] = f"{self.cycle_ms:g}"
        return found

    def apply(
        self, strategy: str, environment: MutableMapping[str, str], defaults: "Tuning | None" = None
    ) -> Trouble | None:
        """Set Horovod's environment variables in ``environment``. Return an error if the options are wrong,
        otherwise ``None``.

        ``strategy`` is the name of the strategy. ``defaults`` has the model's default settings for Horovod.
        Options and existing environment variables override the model's default settings. If the user requests
        Horovod's autotuning, toolkit does not set the model's default settings.
        """
        told = self.told()
        if told and strategy not in USERS:
            options = "--timeline, --autotune, --fusion-mb and --cycle-ms"
            return Trouble(f"{options}: only for Horovod; use --strategy {' or '.join(USERS)}")
        for file in (self.timeline, self.autotune):
            if file and not file.absolute().parent.is_dir():
                return Trouble(f"{file}: the folder of this file does not exist; create the folder first")
        environment.update(told)
        if defaults and strategy in USERS and "HOROVOD_AUTOTUNE" not in environment:
            for name, value in defaults.told().items():
                environment.setdefault(name, value)
        return None


UNTUNED = Tuning()

LARGE = Tuning(fusion_mb=8, cycle_ms=5)
"""Settings of Horovod's messages for models of many megabytes with long training steps on CPUs.

Horovod's thread uses the CPU cores of its rank, so a long cycle time of Horovod leaves more time for the
model. Messages of 8 MiB stay in the CPU's cache while Horovod packs, sums and unpacks the messages. toolkit's
developers measured the speed of ResNet50 on two ranks of one core each, relative to two independent
trainings. With messages of 128 MiB, the relative speed was 0.92 for a cycle time of 0.1 ms and 0.95 for 5 ms.
With messages of 8 MiB, the relative speed was 0.96 for a cycle time of 0.1 ms and 0.97 for 5 ms. Messages of
2 MiB were as fast as messages of 8 MiB, and messages of 32 MiB were as slow as messages of 128 MiB.
"""
