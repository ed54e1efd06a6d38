"""Draft a site profile from the facts about a cluster, with questions that only the user can answer."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from toolkit.errors import BadInput, Missing
from toolkit.knowledge.fabric import between_nodes, fabrics_of, fastest
from toolkit.knowledge.pmix import is_plugin
from toolkit.knowledge.sitefields import MODULE, PATH, WORD, objections
from toolkit.model.facts import HostFacts
from toolkit.model.prediction import Mode
from toolkit.model.site import Container, Defaults, Gpus, Launch, Partition, Site
from toolkit.model.sitefacts import Folder, PartitionFacts, SiteFacts
from toolkit.near import suggest_near

_TIME = "01:00:00"
_HOME = "$HOME/toolkit"
_LASTING = ("WORK", "PROJECT", "STORE")
"""The variables that name folders in which the site does not delete old files.

If several are set, toolkit chooses the first. toolkit prefers these folders to scratch folders.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that only the user can answer, in the terminal or with the option ``option``.

    ``default`` is the answer with ``--yes``. ``choices`` lists all valid answers; it is empty if any text is
    valid.
    """

    option: str
    text: str
    default: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A site profile without the user's answers; ``gaps`` are sentences about unknown facts."""

    site: Site
    questions: tuple[Question, ...]
    gaps: tuple[str, ...]


def draft(name: str, host: HostFacts, facts: SiteFacts, *, destination: str = "", day: str = "") -> Draft:
    """Return the draft of a cluster's site profile, from the facts about the cluster.

    ``destination`` is the SSH destination of the cluster. ``day`` is the date of the probe, which the profile
    records.

    Raises:
        Missing: if the host has no Slurm.
    """
    if host.slurm is None:
        raise Missing(
            f"{host.place}: Slurm was not found: {host.cite('slurm')}",
            fix="run the command on a login node of a cluster with Slurm, or give a login node with `--host`",
        )
    facts = _sayable(facts)
    # If no partition lists GPUs in GRES, nodes may still have GPUs that Slurm does not count.
    counted = any(part.gpus for part in facts.partitions or ())
    parts = tuple(partition_of(part, gpus_counted=counted) for part in facts.partitions or ())
    questions = tuple(_questions(host, facts, parts))
    gaps = tuple(_gaps(host, facts, questions))
    site = Site(
        schema="toolkit.site/1",
        title=name,
        notes="".join(f"{gap}\n" for gap in ("No job was run with this profile yet.", *gaps)),
        architecture=host.architecture or "x86_64",
        host=destination,
        directory=_directory(facts),
        scratch=_scratch(host, facts),
        network=_network(host, facts),
        fabric=_fabric(host),
        container=Container(
            command=_command(host, facts),
            modules=() if _has_runtime(host, facts) else (facts.offers or ())[:1],
            binds=tuple(_binds(facts)),
        ),
        launch=_launch(host),
        gpus=Gpus(ask="partition" if host.gpus and not any(part.gpus for part in parts) else "gres"),
        defaults=Defaults(partition=_usual(parts), account=_account(facts), time=_TIME),
        partitions=parts,
        sources=(f"toolkit init{f', {day}' if day else ''}: the facts of {host.place}",),
    )
    return Draft(site, questions, gaps)


def _sayable(facts: SiteFacts) -> SiteFacts:
    """Return the facts without partitions that are down, and without names that are invalid in a profile.

    For example, the login shell's banner may add invalid names to the output of a query.
    """
    parts = {part.name: part for part in facts.partitions or () if part.up and WORD.fullmatch(part.name)}
    first = next((part.name for part in parts.values() if part.default), None)
    return msgspec.structs.replace(
        facts,
        partitions=None
        if facts.partitions is None
        else tuple(
            msgspec.structs.replace(
                part,
                default=part.name == first,
                gpu=part.gpu if WORD.fullmatch(part.gpu) else "",
                features=tuple(word for word in part.features or () if WORD.fullmatch(word)),
            )
            for part in parts.values()
        ),
        associations=None
        if facts.associations is None
        else tuple(row for row in facts.associations if WORD.fullmatch(row.account)),
        offers=None if facts.offers is None else tuple(o for o in facts.offers if MODULE.fullmatch(o)),
        up=None if facts.up is None else tuple(name for name in facts.up if WORD.fullmatch(name)),
    )


def with_answers(draft_profile: Draft, answers: Mapping[str, str]) -> Site:
    """Return the site profile with the user's answers; the keys of ``answers`` are options such as
    ``--account``.

    Raises:
        BadInput: if an answer is invalid or not among the choices.
    """
    known = {question.option: question.choices for question in draft_profile.questions}
    site = draft_profile.site
    for option, value in answers.items():
        choices = known.get(option, ())
        if option == "--partition":
            choices = tuple(part.name for part in site.partitions)
        if choices and value and value not in choices:
            raise BadInput(
                f"{option} {value}: unknown name{suggest_near(value, choices)}; choices: {', '.join(choices)}"
            )
        site = _with(site, option, value)
        for objection in objections(site):
            raise BadInput(f"{option}: {objection.path}: {objection.what}")
    return site


def _with(site: Site, option: str, value: str) -> Site:
    replace = msgspec.structs.replace
    if option == "--directory":
        return replace(site, directory=value)
    if option == "--module":
        return replace(site, container=replace(site.container, modules=(value,) if value else ()))
    return replace(site, defaults=replace(site.defaults, **{option.removeprefix("--"): value}))


def _questions(host: HostFacts, facts: SiteFacts, parts: tuple[Partition, ...]) -> Iterator[Question]:
    if len(parts) > 1 and not any(part.default for part in parts):
        names = tuple(part.name for part in parts)
        yield Question(
            "--partition", "Slurm has no default partition; which partition do your jobs use", names[0], names
        )
    accounts = tuple(row.account for row in facts.associations or ())
    if len(accounts) > 1:
        yield Question("--account", "Which account are jobs charged to", accounts[0], accounts)
    elif not accounts and "associations" in facts.enforces:
        yield Question("--account", "Slurm requires an account; which account do your jobs use", "")
    offers = facts.offers or ()
    if not _has_runtime(host, facts) and len(offers) > 1:
        yield Question("--module", "Which module provides the container runtime", offers[0], offers)


def _gaps(host: HostFacts, facts: SiteFacts, questions: tuple[Question, ...]) -> Iterator[str]:
    if host.compute_nodes is None:
        yield f"No compute node answered ({_why(host)}): scratch folder and network are unknown."
    if facts.partitions is None:
        yield "The partitions are unknown: sinfo did not answer."
    if not _has_runtime(host, facts) and not facts.offers:
        yield "toolkit found no Apptainer or Singularity on PATH or as a module: set container.command."
    if facts.folders is None:
        yield (
            "The login shell's variables for folders, such as SCRATCH, are unknown: "
            "check directory and container.binds."
        )
    if any(q.option == "--account" and not q.default for q in questions):
        yield "Slurm requires an account but lists no account of yours: set defaults.account."


def _why(host: HostFacts) -> str:
    return (host.unknown.get("compute_nodes") or host.absent.get("compute_nodes") or "").removeprefix(
        "compute nodes: "
    ) or "toolkit did not probe a compute node"


def partition_of(part: PartitionFacts, *, gpus_counted: bool) -> Partition:
    """Return a partition for a site profile; ``gpus_counted`` is true if Slurm counts the cluster's GPUs."""
    return Partition(
        name=part.name,
        default=part.default,
        max_time=part.max_time,
        max_nodes=part.max_nodes,
        nodes=part.nodes or None,
        cores=part.cores or part.cpus or None,
        threads=part.threads or None,
        memory_mb=part.memory_mb or None,
        gpus=part.gpus if gpus_counted else None,
        gpu=part.gpu,
        features=part.features or (),
    )


def _usual(parts: tuple[Partition, ...]) -> str:
    default = next((part.name for part in parts if part.default), "")
    return default or (parts[0].name if parts else "")


def _account(facts: SiteFacts) -> str:
    return facts.associations[0].account if facts.associations else ""


def _has_runtime(host: HostFacts, facts: SiteFacts) -> bool:
    """Return whether toolkit found a container runtime on PATH: on a compute node or, if toolkit probed no
    compute node, on the login host.
    """
    if host.compute_nodes is not None and host.runtime is None and "runtime" in host.absent:
        return False
    return host.runtime is not None or any((facts.commands or ())[:2])


def _command(host: HostFacts, facts: SiteFacts) -> str:
    if host.runtime is not None:
        return posixpath.basename(host.runtime.path) or "singularity"
    for name, path in zip(("apptainer", "singularity"), facts.commands or (), strict=False):
        if path:
            return name
    return (
        "apptainer"
        if any("apptainer" in offer.lower() for offer in (facts.offers or ())[:1])
        else "singularity"
    )


def _directory(facts: SiteFacts) -> str:
    known = {folder.variable: folder for folder in facts.folders or ()}
    usable = [name for name in known if name != "HOME"]
    usable.sort(key=lambda name: _LASTING.index(name) if name in _LASTING else len(_LASTING))
    return f"${usable[0]}/toolkit" if usable else _HOME


def _binds(facts: SiteFacts) -> Iterator[str]:
    """Yield the mount points of the user's folders, except the home folder, which the runtime mounts."""
    folders = {folder.variable: folder for folder in facts.folders or ()}
    home = folders.pop("HOME", Folder(variable="HOME", path="~"))
    mounts = {f.mount for f in folders.values() if f.mount not in {"", "/", "/tmp", home.mount}}  # noqa: S108
    yield from sorted(mount for mount in mounts if PATH.fullmatch(mount) and "/-" not in mount)


def _scratch(host: HostFacts, facts: SiteFacts) -> str:
    """Return a folder on a local disk of the compute nodes, or an empty string.

    If each job has a different folder, return ``$TMPDIR``.
    """
    for path in facts.scratch or ():
        if path == host.tmpdir and re.search(r"\d|/-", path):
            return "$TMPDIR"
        if PATH.fullmatch(path) and "/-" not in path:
            return path
    return ""


def _network(host: HostFacts, facts: SiteFacts) -> str:
    if host.compute_nodes is None:
        return ""
    usable = between_nodes(facts.up or ())
    return next(iter((*fastest(usable), *usable)), "")


def _fabric(host: HostFacts) -> str:
    if host.fabrics:
        return ", ".join(host.fabrics)
    if host.infiniband:
        # The device names identify the network. If toolkit knows no name, assume InfiniBand or RoCE.
        rows = fabrics_of(host.infiniband, (), host.link_layers)
        return ", ".join(dict.fromkeys(row.shown for row in rows)) or "InfiniBand or RoCE"
    return "Ethernet" if host.infiniband == () and host.compute_nodes else ""


def _launch(host: HostFacts) -> Launch:
    """Return the profile's launch settings: PMIx if Slurm offers PMIx, else PMI-2 if Slurm offers PMI-2.

    ``toolkit doctor`` predicts whether the launch mode works for an image.
    """
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    default = (host.slurm.mpi_default if host.slurm else None) or ""
    by_pmix = [name for name in (default, *types) if is_plugin(name)]
    mode: Mode | None = "srun-pmix" if by_pmix else "srun-pmi2" if "pmi2" in types else None
    return Launch(mode=mode, mpi=by_pmix[0] if by_pmix else "pmi2" if mode else "")
