"""Predict launches from few facts: the outcome of each launch mode with usual values, and the facts that
decide it.
"""

import posixpath
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from toolkit import knowledge
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict_plan, working_modes
from toolkit.engine.traits import runtime_of, sends_by_ucx
from toolkit.knowledge.usual import TicketQuestion, usual_properties
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import HostMpi
from toolkit.model.prediction import Mode, Outcome, Plan, Prediction, Request
from toolkit.program.choose import modes_of
from toolkit.versions import older, within

MOST_FACTS = 3
"""Maximum number of deciding facts in an answer."""
_Facts = TypeVar("_Facts", HostFacts, ImageFacts)


@dataclass(frozen=True, slots=True)
class DecidingFact:
    """A fact that the ticket does not state, and the outcomes that other common values of the fact cause."""

    question: TicketQuestion
    assumed: str
    otherwise: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class TicketAnswer:
    """The predicted outcome of a launch mode with usual values, and the facts that decide the outcome."""

    prediction: Prediction
    decides: tuple[DecidingFact, ...]


@dataclass(frozen=True, slots=True)
class TicketAnswers:
    """The answer for each launch mode, the best mode that works, and the facts that the user should find out
    first.
    """

    modes: dict[Mode, TicketAnswer]
    chosen: Mode | None
    decides: tuple[DecidingFact, ...]


Words = Callable[[HostFacts, ImageFacts], Plan]
"""A function that plans a launch from the facts of host and image."""


def answer_ticket(
    host: HostFacts, image: ImageFacts, request: Request, mode: Mode, words: Words | None = None
) -> TicketAnswer:
    """Predict a launch from the stated facts and usual values, and find the facts that decide the outcome.

    ``words`` plans the launch; by default toolkit's own planner does.
    """
    made = words or (lambda on, of: plan(on, of, request, mode))
    filled = fill(host, image, mode)
    said = _predict_with(*filled, request, made)
    found: list[DecidingFact] = []
    for question in usual_properties().question:
        if not _is_unstated(host, image, question.fact):
            continue
        if question.needs and _is_unstated(host, image, question.needs):
            continue
        others = [
            _predict_with(*_with(filled, question.fact, v), request, made).outcome for v in question.values
        ]
        changed = tuple(dict.fromkeys(outcome for outcome in others if outcome != said.outcome))
        if changed or (not question.values and question.fact in said.missing):
            found.append(DecidingFact(question, _assumption(filled, question), changed))
    return TicketAnswer(said, tuple(found[:MOST_FACTS]))


def answers(host: HostFacts, image: ImageFacts, request: Request) -> TicketAnswers:
    """Predict each launch mode of the image, and find the facts that decide most.

    The facts that decide the best mode, or the undecided modes, come first. The facts that decide the most
    other modes follow.
    """
    asked = (request.mode,) if request.mode else modes_of(fill(host, image)[1], request)
    tried: tuple[Mode, ...] = tuple(mode for mode in asked if mode != "gloo")
    found = {mode: answer_ticket(host, image, request, mode) for mode in tried}
    works = working_modes(tuple(one.prediction for one in found.values()))
    chosen = works[0] if works else None
    facts = [fact for one in found.values() for fact in one.decides]
    first = [found[chosen]] if chosen else [a for a in found.values() if a.prediction.outcome == "unknown"]
    own = {fact.question.fact for one in first for fact in one.decides}
    named = Counter(fact.question.fact for fact in facts)
    order = sorted(named, key=lambda name: (name not in own, -named[name]))
    by_name = {fact.question.fact: fact for fact in reversed(facts)}
    return TicketAnswers(found, chosen, tuple(by_name[name] for name in order[:MOST_FACTS]))


def _assumption(filled: tuple[HostFacts, ImageFacts], question: TicketQuestion) -> str:
    """Return the usual value of a fact as text; empty if the fact stays unknown."""
    side, *parts = question.fact.split(".")
    value: Any = filled[0] if side == "host" else filled[1]
    for part in parts:
        value = getattr(value, part, None)
    if value is None:
        return ""
    return question.usual.replace(
        "{value}", " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    )


def fill(host: HostFacts, image: ImageFacts, mode: Mode | None = None) -> tuple[HostFacts, ImageFacts]:
    """Return the facts with usual values in place of unknown values.

    For an image without an MPI, it stays unknown whether the host has an MPI to mount.
    """
    known, found = usual_properties(), host.runtime
    if found is not None and not found.version:
        release = known.runtime_releases.get(found.name, "")
        host = msgspec.structs.replace(host, runtime=msgspec.structs.replace(found, version=release))
    if not image.format:
        formats = runtime_of(host).FORMATS
        image = msgspec.structs.replace(image, format="sif" if "sif" in formats else min(formats))
    image = _fill_usual(image, {**known.image, **_usual_additions(host, image)}, known.absent.image)
    host = _fill_usual(host, {**known.host, "runtime": _runtime(host)}, known.absent.host)
    if (
        image.mpi is not None
        and image.mpi.interfaces is None
        and image.mpi.implementation in known.interfaces
    ):
        faces = known.interfaces[image.mpi.implementation]
        image = msgspec.structs.replace(image, mpi=msgspec.structs.replace(image.mpi, interfaces=faces))
    if host.pmix is None and "pmix" not in host.absent:
        host = _with_fact(host, "pmix", _of_plugin(host))
    client = (
        image.mpi
        and image.mpi.implementation == "openmpi"
        and knowledge.bundled_pmix(image.mpi.version or "")
    )
    if client and image.pmix is None:
        external = image.mpi and any(name.startswith("ext") for name in image.mpi.components.get("pmix", ()))
        image = _with_fact(image, "pmix", known.external_pmix if external else client)
    if mode == "bind" and "mpi" in image.absent and host.mpis is None and not host.folder_mpis:
        return _of_one_architecture(host, image)
    return _of_one_architecture(_with_mpi(host, image), image)


def _usual_additions(host: HostFacts, image: ImageFacts) -> dict[str, Any]:
    """Return usual facts of an image that depend on its stated facts."""
    known, mpi, found = usual_properties(), image.mpi, dict[str, Any]()
    if mpi is not None and (mpi.implementation == "intelmpi" or sends_by_ucx(mpi)):
        found |= known.beside["intelmpi" if mpi.implementation == "intelmpi" else "ucx"]
    if image.horovod:
        frameworks = [name for name in ("tensorflow", "pytorch") if getattr(image, name)]
        found |= {**known.beside["horovod"], "horovod_frameworks": frameworks}
    if host.kernel and older(host.kernel, known.old_kernel.kernel):
        found["glibc"] = known.old_kernel.glibc
    return found


def _runtime(host: HostFacts) -> dict[str, Any]:
    """Return the usual facts of a runtime, with setuid as is usual for the stated runtime."""
    found = host.runtime
    rows = (row for row in usual_properties().setuid if found is not None and row.name == found.name)
    setuid = any(within(found.version, row.versions) for row in rows) if found is not None else False
    return {**usual_properties().host["runtime"], "setuid": setuid}


def _with_mpi(host: HostFacts, image: ImageFacts) -> HostFacts:
    """Return the host with usual MPI facts. If the ticket states no MPI of the host, the host gets a copy of
    the image's MPI.
    """
    mpi = image.mpi
    if host.mpis:
        return _with_fact(host, "mpis", tuple(_usual_host_mpi(one, image) for one in host.mpis))
    if host.mpis is not None:
        return host
    if mpi is None:
        return _with_fact(host, "mpis", ())
    copy = HostMpi(
        implementation=mpi.implementation,
        version=mpi.version,
        launcher="/opt/mpi/bin/mpirun",
        pmix=image.pmix,
        soname=mpi.soname,
        interfaces=mpi.interfaces,
        device=mpi.device,
    )
    return _with_fact(host, "mpis", (_usual_host_mpi(copy, image),))


def _usual_host_mpi(mpi: HostMpi, image: ImageFacts) -> HostMpi:
    """Return an MPI of the host with usual values in place of unknown values.

    The usual MPI is in one folder with all its dependencies, contains its PMIx, and has the components of the
    image's MPI.
    """
    is_open = mpi.implementation == "openmpi"
    prefix = mpi.prefix or posixpath.dirname(posixpath.dirname(mpi.launcher))
    soname = mpi.soname or ("libmpi.so.40" if is_open else "libmpi.so.12")
    alike = image.mpi if image.mpi and image.mpi.implementation == mpi.implementation else None
    usually: dict[str, Any] = {
        "leaks": (),
        "pmix": knowledge.bundled_pmix(mpi.version or "") if is_open else None,
        "prefix": prefix,
        "library": f"{prefix}/lib/{soname}",
        "soname": soname,
        "interfaces": usual_properties().interfaces.get(mpi.implementation),
        "components": (alike.components or None) if alike else None,
        "components_need": {},
        "needs": (),
        "places": {},
        "folders": (f"{prefix}/lib",),
        "outside": (),
        "glibc_needed": "2.17",
    }
    unknown = {name: value for name, value in usually.items() if getattr(mpi, name) is None}
    return msgspec.structs.replace(mpi, **unknown)


def _of_plugin(host: HostFacts) -> str | None:
    """Return a release of the newest numbered PMIx plugin that srun lists: ``4.2.9`` for ``pmix_v4``."""
    types = (host.slurm.mpi_types if host.slurm else None) or ()
    newest = {"pmix_v2": "2.2.5", "pmix_v3": "3.2.3", "pmix_v4": "4.2.9", "pmix_v5": "5.0.7"}
    return next((newest[t] for t in reversed(types) if t in newest), "5.0.7" if "pmix" in types else None)


def _of_one_architecture(host: HostFacts, image: ImageFacts) -> tuple[HostFacts, ImageFacts]:
    if (
        host.architecture != image.architecture
        and image.architecture == usual_properties().image["architecture"]
    ):
        image = msgspec.structs.replace(image, architecture=host.architecture)
    elif host.architecture != image.architecture:
        host = msgspec.structs.replace(host, architecture=image.architecture)
    return host, image


def _fill_usual(facts: _Facts, usually: dict[str, Any], absent: tuple[str, ...]) -> _Facts:
    given = msgspec.to_builtins(facts)
    merged = _merge_facts(given, usually, {*facts.absent})
    lacking = {name: "not stated; absent on a typical cluster" for name in absent if merged.get(name) is None}
    merged["absent"] = {**merged.get("absent", {}), **lacking}
    merged["unknown"] = {
        name: why for name, why in merged.get("unknown", {}).items() if _is_missing(name, merged)
    }
    kind: type[_Facts] = type(facts)
    return msgspec.convert(merged, kind)


def _merge_facts(given: dict[str, Any], usually: dict[str, Any], absent: set[str]) -> dict[str, Any]:
    result = dict(given)
    for name, value in usually.items():
        if name in absent or (name == "place" and given.get(name)):
            continue
        if isinstance(value, dict) and isinstance(given.get(name), dict) and given[name]:
            result[name] = _merge_facts(given[name], value, set())
        elif given.get(name) is None or given.get(name) == {}:
            result[name] = value
    return result


def _is_missing(name: str, merged: dict[str, Any]) -> bool:
    value: Any = merged
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value is None and name not in merged["absent"]


def _with_fact(facts: _Facts, name: str, value: object) -> _Facts:
    books = {"absent": dict(facts.absent), "unknown": dict(facts.unknown)}
    for book in books.values():
        book.pop(name, None)
    if value is None:
        books["absent"][name] = "absent on a typical cluster"
    return msgspec.structs.replace(facts, **{name: value}, **books)


def _with(filled: tuple[HostFacts, ImageFacts], fact: str, value: object) -> tuple[HostFacts, ImageFacts]:
    """Return the facts of host and image with a new value for one fact."""
    side, *parts = fact.split(".")
    facts: Any = filled[0] if side == "host" else filled[1]
    if len(parts) == 1:
        changed = _with_fact(facts, parts[0], tuple(value) if isinstance(value, list) else value)
    else:
        inner = getattr(facts, parts[0])
        if inner is None:
            return filled
        given = tuple(value) if isinstance(value, list) else value
        changed = msgspec.structs.replace(
            facts, **{parts[0]: msgspec.structs.replace(inner, **{parts[1]: given})}
        )
    return (changed, filled[1]) if side == "host" else (filled[0], changed)


def _is_unstated(host: HostFacts, image: ImageFacts, fact: str) -> bool:
    side, *parts = fact.split(".")
    facts: Any = host if side == "host" else image
    if parts[0] in facts.absent:
        return False
    for part in parts:
        facts = getattr(facts, part, None)
    return facts is None


def _predict_with(host: HostFacts, image: ImageFacts, request: Request, made: Words) -> Prediction:
    return predict_plan(host, image, request, made(host, image))
