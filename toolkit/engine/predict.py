"""Predict what every way of launching an image on a host will do; pure."""

from collections.abc import Iterable

import msgspec

from toolkit.engine.bound import loaded
from toolkit.engine.case import Case
from toolkit.engine.entering import UNREAD, entering
from toolkit.engine.judge import Judged, is_ok, weigh
from toolkit.engine.plan import plan
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.engine.searched import not_told, searched
from toolkit.engine.traits import pmix_majors
from toolkit.knowledge.pmix import releases
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan, Prediction, Request, Verdict
from toolkit.model.site import Site
from toolkit.program import horovod
from toolkit.program.choose import best_modes, modes_of

RANKING: tuple[Mode, ...] = (
    "srun-pmix",
    "srun-pmi2",
    "mpirun-host",
    "bind",
    "mpirun-container",
    "srun-none",
)
"""Best first: srun works on several nodes, carries the fabric of the image, needs no MPI on the host and
leaves placement to Slurm. Gloo serves Horovod alone: it is taken only where it is asked for, as nobody
knows here what the command is."""

_OTHERS: tuple[Mode, ...] = ("torch", "jax", "tf-config")
"""Modes of programs without MPI, which only apply to an image that has such a program."""

_SEVERITIES = ("error", "warning", "info")
_OFFERED: tuple[Mode, ...] = ("srun-pmix", "srun-pmi2")
"""Ways that a host offers or not, whatever is in an image."""
_OF_HOST = {"environment-cleaned"}
"""Rules that judge a host without an image as well, though they ask about the image if it has an MPI."""
_NOT_OF_HOST = {
    *("bind-source-missing", "squashfuse-refused", "single-copy-unavailable", "compute-nodes-not-asked"),
}
"""Rules that ask about the host alone, and whose findings the page of a host leaves out."""


def predict(
    host: HostFacts,
    image: ImageFacts,
    request: Request,
    site: Site | None = None,
    fix: LaunchFix | None = None,
) -> Verdict:
    """Judge every launch mode that applies to the program, as it would be launched, and choose the best one.

    ``request.mode``, or the mode of a ``fix``, narrows the choice to one mode; all are judged, so that the
    user sees the others.
    """
    asked = fix.mode if fix else request.mode
    wanted = msgspec.structs.replace(request, mode=asked)
    plans = (plan(host, image, request, mode, site, fix) for mode in modes_of(image, wanted))
    judged = [_judged(host, image, request, made) for made in plans]
    predictions = tuple(one.prediction for one in judged)
    # Only now is it known which other way a fix may name.
    works = working(predictions, best_modes(image, wanted))
    found = _merged((finding for one in judged for finding in one.findings(works)), len(judged))
    return Verdict(predictions=predictions, findings=found, chosen=_choose(works, asked))


def outcomes(host: HostFacts, image: ImageFacts, request: Request) -> tuple[Prediction, ...]:
    """Return the predictions of :func:`predict` without its findings, which takes less time."""
    plans = (plan(host, image, request, mode) for mode in modes_of(image, request))
    return tuple(_judged(host, image, request, made).prediction for made in plans)


def working(predictions: tuple[Prediction, ...], best: tuple[Mode, ...] = ()) -> tuple[Mode, ...]:
    """Return the ways that are predicted to work, best first; ``best`` are the modes made for the program."""
    works = {p.mode for p in predictions if p.works}
    return tuple(mode for mode in dict.fromkeys((*best, *RANKING, *_OTHERS, "gloo")) if mode in works)


def foresee(host: HostFacts, image: ImageFacts, request: Request, made: Plan) -> Prediction:
    """Judge one launch by its own words."""
    return _judged(host, image, request, made).prediction


def will_work(host: HostFacts, image: ImageFacts, request: Request, made: Plan) -> bool:
    """Return whether :func:`foresee` predicts ok. It takes less time if it does not."""
    case = case_of(host, image, request, made)
    if is_ok(case, RULES):
        return True
    open_release = case.state("host.pmix") == "unknown" and bool(pmix_majors(host))
    return open_release and foresee(host, image, request, made).outcome == "ok"


def _judged(host: HostFacts, image: ImageFacts, request: Request, made: Plan) -> Judged:
    """Judge one launch; where of Slurm's PMIx only major releases are known, by all of their releases.

    What becomes of the launch is then known if it is the same under all of them, and so is what every one
    of them says.
    """
    said = weigh(case_of(host, image, request, made), RULES)
    majors = pmix_majors(host)
    if said.prediction.outcome != "unknown" or "host.pmix" not in said.prediction.missing or not majors:
        return said
    first, *others = [
        weigh(case_of(_serving(host, release), image, request, made), RULES)
        for major in majors
        for release in (str(major), *releases(major))
    ]
    if any(other.prediction.outcome != first.prediction.outcome for other in others):
        return said
    always = set(first.prediction.findings).intersection(*(other.prediction.findings for other in others))
    findings = tuple(name for name in first.prediction.findings if name in always)
    kept = tuple(answer for answer in first.answers if answer.rule.id in always)
    return Judged(first.case, kept, msgspec.structs.replace(first.prediction, findings=findings))


def _serving(host: HostFacts, release: str) -> HostFacts:
    """Return the facts of a host with this release of Slurm's PMIx."""
    line = f"{host.cite('slurm.mpi_types')}; of which release it is was not told, and all of them do this"
    return msgspec.structs.replace(
        host,
        pmix=release,
        evidence={**host.evidence, "pmix": line},
        unknown={name: why for name, why in host.unknown.items() if name != "pmix"},
    )


def case_of(host: HostFacts, image: ImageFacts, request: Request, made: Plan) -> Case:
    """Return the case of a launch, with what is mounted over the image in place."""
    found = searched(host, image, made)
    entered = entering(host, found, made)
    if entered is None:
        return Case(host, found, request, made)
    if entered == "unread":
        return Case(host, not_told(found, UNREAD), request, made)
    return Case(host, loaded(host, found, entered), request, made, mounted_over=found)


def _choose(works: tuple[Mode, ...], asked: Mode | None) -> Mode | None:
    wanted = (asked,) if asked else (*RANKING, *_OTHERS)
    return next((mode for mode in works if mode in wanted), None)


def _merged(findings: Iterable[Finding], modes: int) -> tuple[Finding, ...]:
    """Join what one rule said of several of so many modes, and sort by severity."""
    by_key: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.id, finding.title)
        if earlier := by_key.get(key):
            finding = _joined(earlier, finding, modes)  # noqa: PLW2901 - the joined one takes its place
        by_key[key] = finding
    return tuple(sorted(by_key.values(), key=lambda f: (_SEVERITIES.index(f.severity), f.undecided)))


def _joined(one: Finding, other: Finding, judged: int) -> Finding:
    modes = (*one.modes, *other.modes)
    return Finding(
        id=one.id,
        severity=one.severity,
        title=one.title,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
        fix=one.fix,
        source=one.source,
        modes=() if len(modes) == judged else modes,
        undecided=one.undecided,
    )


def examine(host: HostFacts) -> tuple[Finding, ...]:
    """Judge a host without an image: the rules that ask about nothing else."""
    image = ImageFacts(path="", format="")
    rules = tuple(rule for rule in RULES if _is_of_host(rule))
    # The smallest job that needs its ranks to find each other: what else is asked for is not known here.
    request = Request(nodes=1, ranks_per_node=2)
    judged = [weigh(Case(host, image, request, plan(host, image, request, m)), rules) for m in horovod.MODES]
    advice = {r.id for r in rules if r.advice}
    # Whatever else works is a matter of the image, too.
    offers = tuple(m for m in working(tuple(one.prediction for one in judged)) if m in _OFFERED)
    found = _merged((f for one in judged for f in one.findings(offers)), len(judged))
    # What nobody could tell of one way, or for advice, is no news of the host.
    told = (f for f in found if not (f.undecided and (f.id in advice or f.modes)))
    return _merged((_milder(finding) for finding in told), len(judged))


def _is_of_host(rule: Rule) -> bool:
    if rule.id in _NOT_OF_HOST:
        return False
    asks_host = bool(rule.facts) and all(name.startswith("host.") for name in rule.facts)
    return asks_host or rule.id in _OF_HOST


def _milder(finding: Finding) -> Finding:
    """What rules out some ways of launching only is no error of the host, as another way may do."""
    bound = finding.severity == "error" and finding.modes
    return msgspec.structs.replace(finding, severity="info") if bound else finding
