"""What to run on a cluster, and the record of what was run."""

from typing import Literal

import msgspec

from toolkit.model.prediction import Mode, Plan

JobState = Literal["pending", "running", "completed", "failed", "cancelled", "timeout", "unknown"]

FINAL_STATES: frozenset[JobState] = frozenset({"completed", "failed", "cancelled", "timeout"})


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a person asks for it; ``command`` runs once a rank inside the image.

    Paths are the cluster's own. ``time`` is in Slurm's own form, ``cpus_per_rank`` a count of cores.
    """

    name: str
    image: str
    command: tuple[str, ...]
    directory: str
    nodes: int = 1
    ranks_per_node: int = 1
    cpus_per_rank: int | None = None
    time: str = "01:00:00"
    partition: str | None = None
    account: str | None = None
    env: dict[str, str] = {}
    binds: tuple[str, ...] = ()
    preflight: bool = True

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


class ImageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of an image's signatures when a job was submitted.

    ``good``: one by a trusted key covers every byte. ``unknown-key``: every byte is as it was signed, but
    the key is not here. ``no-gpg``: it has one, and there is no gpg. ``not-checked``: by ``--no-verify``.
    ``signers`` are fingerprints.
    """

    signature: Literal["good", "none", "unknown-key", "no-gpg", "not-checked"]
    signers: tuple[str, ...] = ()


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was launched, from which image, with which plan, where, and what became of it.

    ``key`` is the name of its folder of records and unique on this machine; ``id`` is Slurm's number.
    ``forced`` says that a predicted failure was overridden; ``submitted`` is UTC in ISO 8601.
    """

    schema: str = "toolkit.job/1"
    key: str
    id: str
    place: str
    spec: JobSpec
    mode: Mode
    plan: Plan
    predicted: str
    image_digest: str
    submitted: str
    forced: bool = False
    image_check: ImageCheck | None = None
    """``None`` in records of before images were checked."""
    state: JobState = "pending"
    exit_code: int | None = None
    host: str | None = None
    """What was given as ``--host`` or ``--cluster``, to come back to; ``None`` for this machine."""
    cluster: str | None = None
    ssh_config: str | None = None
