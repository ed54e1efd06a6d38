"""Check the values of a site profile, after :mod:`toolkit.knowledge.sites` has checked their types.

Job scripts contain values of the profile as shell words. Before the user submits a job, toolkit refuses each
value that is not valid in a job script. The error names the field.
"""

import re
from collections.abc import Iterator

from toolkit.knowledge import sbatch
from toolkit.knowledge.strict import FieldFault
from toolkit.model.site import Partition, Site
from toolkit.near import suggest_near

_PATH = r"(?:/|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})(?:[\w.+@%=/~-]|\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\})*"
PATH = re.compile(_PATH, re.ASCII)
"""A pattern for a path that starts with ``/`` or a variable. A path cannot start with ``~``, because a shell
does not expand ``~`` in quotes.
"""
_BIND = re.compile(rf"{_PATH}(?::{_PATH}(?::r[ow])?)?", re.ASCII)
MODULE = re.compile(r"(?:swap \w[\w.+/:=@-]* )?\w[\w.+/:=@-]*|use /\w[\w.+/-]*", re.ASCII)
WORD = re.compile(r"\w[\w.+:-]*", re.ASCII)
COMMAND = re.compile(r"/?\w[\w.+/-]*", re.ASCII)
_OPTION = re.compile(r"--?[A-Za-z][\w-]*(?:[= ][^\s'\"`\\$;&|<>()#]*)?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PATTERN = re.compile(r"[A-Za-z_*?][\w*?]*", re.ASCII)
_TIME = re.compile(r"UNLIMITED|INFINITE|\d{1,9}|(?:\d{1,5}-)?\d{1,5}(?::\d{1,2}){0,2}", re.ASCII)
_MEMORY = re.compile(r"\d{1,9}[KMGT]?", re.ASCII)
_HOST = re.compile(r"[\w][\w.@:-]*", re.ASCII)
_CONSTRAINT = re.compile(r"[\w][\w.+&|*()\[\],:-]*", re.ASCII)
_LARGEST = 1_000_000_000

SILENCE = "expected the reason for hiding this finding, on one line"
"""The message about an id in the table ``silence`` that has no reason."""

_NOT_PRINTABLE = "the value contains a line break or an unprintable character"


def objections(site: Site) -> Iterator[FieldFault]:
    """Yield the faults in the values of a site profile."""
    yield from _of_texts(site)
    yield from _of_lists(site)
    if site.scheduler != "slurm" and site.launch.launcher == "srun":
        what = f"srun works only with Slurm, but the profile's scheduler is {site.scheduler}"
        yield FieldFault("launch.launcher", what, ("pals",))
    for name, value in site.env.items():
        if not _VARIABLE.fullmatch(name):
            what = f"{name!r} is not a variable name; use letters, digits and _, but no digit at the start"
            yield FieldFault("env", what)
        if not _line(value):
            yield FieldFault(f"env.{name}", _NOT_PRINTABLE)
    for name, reason in site.silence.items():
        if not reason.strip() or not _line(reason):
            yield FieldFault(f"silence.{name}", SILENCE)
    yield from _of_partitions(site)


def _line(text: str) -> bool:
    return text.isprintable()


def _of_texts(site: Site) -> Iterator[FieldFault]:
    """Yield the faults of fields that must be one word or one line."""
    for path, line in (("title", site.title), ("centre", site.centre), ("fabric", site.fabric)):
        if not _line(line):
            yield FieldFault(path, _NOT_PRINTABLE)
    if not _line(site.image.verify_key):
        yield FieldFault("image.verify_key", _NOT_PRINTABLE)
    if not site.title.strip():
        yield FieldFault("title", "the title, which names the cluster, is missing")
    here = site.defaults
    for path, word, pattern, like in (
        ("architecture", site.architecture, WORD, "x86_64, as `uname -m` prints it"),
        ("host", site.host, _HOST, "login.example.org, or USER@HOST"),
        ("directory", site.directory, PATH, "$WORK/toolkit"),
        ("shared", site.shared, PATH, "/project/course"),
        ("scratch", site.scratch, PATH, "/local/$SLURM_JOB_ID"),
        ("network", site.network, WORD, "ib0, the name of a network interface"),
        ("container.command", site.container.command or " ", COMMAND, "singularity, or the runtime's path"),
        ("launch.mpi", site.launch.mpi, WORD, "pmix"),
        ("gpus.gres", site.gpus.gres or " ", WORD, "gpu"),
        ("defaults.partition", here.partition, WORD, "batch"),
        ("defaults.account", here.account, WORD, "project01, the name of a Slurm account"),
        ("defaults.qos", here.qos, WORD, "normal"),
        ("defaults.constraint", here.constraint, _CONSTRAINT, "gpu"),
        ("defaults.time", here.time, _TIME, "01:00:00"),
        ("defaults.memory", here.memory, _MEMORY, "16G"),
        ("defaults.licenses", here.licenses, _CONSTRAINT, "matlab, the name of a license"),
    ):
        if word and not pattern.fullmatch(word):
            yield FieldFault(path, f"{word!r} is not allowed; write a value such as {like}")
    yield from _check_number("defaults.cpus_per_rank", here.cpus_per_rank, minimum=1)


def _of_lists(site: Site) -> Iterator[FieldFault]:
    for path, words, pattern, like in (
        ("modules", site.modules, MODULE, "gcc/12.3.0"),
        ("keep", site.keep, _PATTERN, "PSP_*"),
        ("container.modules", site.container.modules, MODULE, "singularity/3.6.4"),
        ("container.binds", site.container.binds, _BIND, "/scratch or /opt:/opt:ro"),
        ("launch.srun", site.launch.srun, _OPTION, "--cpu-bind=cores"),
        ("defaults.sbatch", site.defaults.sbatch, _OPTION, "--core-spec=4"),
    ):
        for number, word in enumerate(words):
            if not pattern.fullmatch(word):
                yield FieldFault(
                    f"{path}[{number}]", f"{word!r} is not allowed; write a value such as {like}"
                )
    for number, line in enumerate(site.sources):
        if not line.strip() or not _line(line):
            what = "the value is empty, or contains a line break or an unprintable character"
            yield FieldFault(f"sources[{number}]", what)
    for number, option in enumerate(site.defaults.sbatch):
        if not sbatch.is_one_option(option):
            what = f"{option!r} is not exactly one option of sbatch; write each option as a separate value"
            yield FieldFault(f"defaults.sbatch[{number}]", what)
        elif sbatch.reserved_name(option, _FIXED):
            name = option.partition("=")[0].partition(" ")[0]
            yield FieldFault(f"defaults.sbatch[{number}]", f"toolkit itself sets {name}; remove this option")


_FIXED = ("output", "o", "error", "e", "chdir", "D", "workdir", "array", "a", "wrap")
"""The sbatch options that a profile cannot contain, because toolkit sets them to find and track a job."""


def _of_partitions(site: Site) -> Iterator[FieldFault]:
    names = [part.name for part in site.partitions]
    for number, part in enumerate(site.partitions):
        path = f"partitions[{number}]"
        if part.name in names[:number]:
            yield FieldFault(f"{path}.name", f"two partitions have the name {part.name!r}")
        yield from _of_partition(path, part)
    if names and (wanted := site.defaults.partition) and wanted not in names:
        what = f"unknown partition {wanted!r}{suggest_near(wanted, names)}"
        yield FieldFault("defaults.partition", what, tuple(names))
    if sum(part.default for part in site.partitions) > 1:
        last = max(n for n, part in enumerate(site.partitions) if part.default)
        yield FieldFault(
            f"partitions[{last}].default",
            "another partition is also the default; set `default` in only one partition",
        )


def _of_partition(path: str, partition: Partition) -> Iterator[FieldFault]:
    if not WORD.fullmatch(partition.name):
        yield FieldFault(f"{path}.name", f"{partition.name!r} is not a valid partition name")
    if partition.max_time and not _TIME.fullmatch(partition.max_time):
        yield FieldFault(
            f"{path}.max_time",
            (f"{partition.max_time!r} is not a time in Slurm's format, such as 1-00:00:00"),
        )
    if partition.gpu and not WORD.fullmatch(partition.gpu):
        yield FieldFault(f"{path}.gpu", f"{partition.gpu!r} is not a valid GPU type, such as v100")
    for number, feature in enumerate(partition.features):
        if not WORD.fullmatch(feature):
            yield FieldFault(
                f"{path}.features[{number}]", f"{feature!r} is not a valid node feature, such as knl"
            )
    for name in ("max_nodes", "nodes", "cores", "threads", "memory_mb", "gpus"):
        yield from _check_number(
            f"{path}.{name}", getattr(partition, name), minimum=0 if name == "gpus" else 1
        )


def _check_number(path: str, number: int | None, *, minimum: int) -> Iterator[FieldFault]:
    if number is not None and not minimum <= number <= _LARGEST:
        yield FieldFault(path, f"expected a number from {minimum} to {_LARGEST}")
