"""Predict the outcome of every launch mode for an image on a host."""

from collections.abc import Iterable

import msgspec

from toolkit.engine.case import Case
from toolkit.engine.host_mpi import apply_host_mpi
from toolkit.engine.judge import Judged, ask_rules, is_ok
from toolkit.engine.planning.module_mounts import UNREAD, add_module_mounts
from toolkit.engine.planning.plan import plan
from toolkit.engine.registry import RULES
from toolkit.engine.rule import Rule
from toolkit.engine.search_path import apply_search_path, apply_variables, with_unknown_mpi
from toolkit.engine.traits import pmix_majors, runtime_of
from toolkit.knowledge.pmix import releases
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import Mode, Plan, Prediction, Request, Verdict
from toolkit.model.site import Site
from toolkit.program import horovod
from toolkit.program.choose import best_modes, modes_of
from toolkit.runtime import spell_options

RANKING: tuple[Mode, ...] = (
    "srun-pmix",
    "srun-pmi2",
    "mpirun-host",
    "bind",
    "mpirun-container",
    "srun-none",
)
"""Launch modes, the best mode first. Modes with srun and PMI come first: they work on several nodes, let the
image's MPI use the fast network, need no MPI on the host, and leave the placement of ranks to Slurm. toolkit
chooses ``gloo``, which works only for Horovod, only if the user requests this mode, or if no other mode
works for a trainer.
"""

_OTHERS: tuple[Mode, ...] = ("torch", "jax", "tf-config")
"""Launch modes for PyTorch, JAX and TensorFlow programs whose ranks find each other without MPI."""

_SEVERITIES = ("error", "warning", "info")
_OFFERED: tuple[Mode, ...] = ("srun-pmix", "srun-pmi2")
"""Launch modes whose availability depends only on facts about the host."""
_OF_HOST = {"environment-cleaned"}
"""Ids of rules that :func:`judge_host` uses, although these rules also read facts about an image."""
_NOT_OF_HOST = {
    *(
        "bind-source-missing",
        "squashfuse-refused",
        "fuse-device-closed",
        "single-copy-unavailable",
        "compute-nodes-not-asked",
    ),
}
"""Ids of rules that :func:`judge_host` skips, although these rules read only facts about the host."""


def predict(
    host: HostFacts,
    image: ImageFacts,
    request: Request,
    site: Site | None = None,
    fix: LaunchFix | None = None,
) -> Verdict:
    """Predict every launch mode of the program, and choose the best mode.

    ``request.mode``, or the mode of a ``fix``, limits the choice to one mode. The verdict still contains the
    other modes, so that the user can compare the modes.
    """
    asked = fix.mode if fix else request.mode
    wanted = msgspec.structs.replace(request, mode=asked)
    plans = (plan(host, image, request, mode, site, fix) for mode in modes_of(image, wanted))
    judged = [_judge_plan(host, image, request, made) for made in plans]
    predictions = tuple(one.prediction for one in judged)
    # The fix in a finding may recommend a working launch mode, so create findings after all predictions.
    works = working_modes(predictions, best_modes(image, wanted))
    found = _merge_findings((finding for one in judged for finding in one.findings(works)), len(judged))
    return Verdict(predictions=predictions, findings=found, chosen=_choose(works, asked))


def outcomes(host: HostFacts, image: ImageFacts, request: Request) -> tuple[Prediction, ...]:
    """Return the predictions that :func:`predict` returns, without findings. :func:`predict` needs more time,
    because it also creates the findings.
    """
    plans = (plan(host, image, request, mode) for mode in modes_of(image, request))
    return tuple(_judge_plan(host, image, request, made).prediction for made in plans)


def working_modes(predictions: tuple[Prediction, ...], preference: tuple[Mode, ...] = ()) -> tuple[Mode, ...]:
    """Return the launch modes that toolkit predicts to work, the best mode first. ``preference`` lists the
    modes that suit the program best.
    """
    works = {p.mode for p in predictions if p.works}
    return tuple(mode for mode in dict.fromkeys((*preference, *RANKING, *_OTHERS, "gloo")) if mode in works)


def predict_plan(host: HostFacts, image: ImageFacts, request: Request, plan: Plan) -> Prediction:
    """Return the prediction for the launch that a plan describes."""
    return _judge_plan(host, image, request, plan).prediction


def will_work(host: HostFacts, image: ImageFacts, request: Request, plan: Plan) -> bool:
    """Return whether :func:`predict_plan` predicts the outcome ``ok``. If another outcome is predicted, this
    function needs less time than :func:`predict_plan`.
    """
    case = case_of(host, image, request, plan)
    if is_ok(case, RULES):
        return True
    open_release = case.state("host.pmix") == "unknown" and bool(pmix_majors(host))
    return open_release and predict_plan(host, image, request, plan).outcome == "ok"


def _judge_plan(host: HostFacts, image: ImageFacts, request: Request, plan: Plan) -> Judged:
    """Predict one launch. If toolkit knows only the major release of Slurm's PMIx, toolkit predicts the
    launch for each known PMIx release with this major number.

    If the predicted outcome is the same for all these PMIx releases, the result has this outcome, and the
    findings that occur with all these releases. If the outcomes differ, the result has the outcome
    ``unknown``.
    """
    said = ask_rules(case_of(host, image, request, plan), RULES)
    majors = pmix_majors(host)
    if said.prediction.outcome != "unknown" or "host.pmix" not in said.prediction.missing or not majors:
        return said
    first, *others = [
        ask_rules(case_of(_with_pmix(host, release), image, request, plan), RULES)
        for major in majors
        for release in (str(major), *releases(major))
    ]
    if any(other.prediction.outcome != first.prediction.outcome for other in others):
        return said
    always = set(first.prediction.findings).intersection(*(other.prediction.findings for other in others))
    findings = tuple(name for name in first.prediction.findings if name in always)
    kept = tuple(answer for answer in first.answers if answer.rule.id in always)
    return Judged(first.case, kept, msgspec.structs.replace(first.prediction, findings=findings))


def _with_pmix(host: HostFacts, release: str) -> HostFacts:
    """Return the facts of a host whose Slurm has this PMIx release."""
    line = (
        f"{host.cite('slurm.mpi_types')}; the release of this PMIx is unknown, but the prediction is the "
        f"same for all releases"
    )
    return msgspec.structs.replace(
        host,
        pmix=release,
        evidence={**host.evidence, "pmix": line},
        unknown={name: why for name, why in host.unknown.items() if name != "pmix"},
    )


def case_of(host: HostFacts, image: ImageFacts, request: Request, plan: Plan) -> Case:
    """Return the :class:`Case` of a launch. If the binds mount the host's MPI over the image's MPI, the case
    describes the image with the host's MPI.
    """
    words = spell_options(runtime_of(host), plan.container)
    plan = plan if words == plan.container else msgspec.structs.replace(plan, container=words)
    found = apply_search_path(host, apply_variables(host, image, plan), plan)
    entered = add_module_mounts(host, found, plan)
    if entered is None:
        return Case(host, found, request, plan)
    if entered == "unread":
        return Case(host, with_unknown_mpi(found, UNREAD), request, plan)
    return Case(host, apply_host_mpi(host, found, entered), request, plan, mounted_over=found)


def _choose(modes: tuple[Mode, ...], requested_mode: Mode | None) -> Mode | None:
    choices = (requested_mode,) if requested_mode else (*RANKING, *_OTHERS)
    return next((mode for mode in modes if mode in choices), None)


def _merge_findings(findings: Iterable[Finding], modes: int) -> tuple[Finding, ...]:
    """Merge equal findings of several launch modes, and sort the findings by severity. ``modes`` is the
    number of judged modes.
    """
    by_key: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.id, finding.title)
        if earlier := by_key.get(key):
            finding = _join_pair(earlier, finding, modes)  # noqa: PLW2901 - use the merged finding now
        by_key[key] = finding
    return tuple(sorted(by_key.values(), key=lambda f: (_SEVERITIES.index(f.severity), f.undecided)))


def _join_pair(finding: Finding, other: Finding, mode_count: int) -> Finding:
    modes = (*finding.modes, *other.modes)
    return Finding(
        id=finding.id,
        severity=finding.severity,
        title=finding.title,
        evidence=tuple(dict.fromkeys((*finding.evidence, *other.evidence))),
        fix=finding.fix,
        source=finding.source,
        modes=() if len(modes) == mode_count else modes,
        undecided=finding.undecided,
    )


def judge_host(host: HostFacts) -> tuple[Finding, ...]:
    """Return the findings about a host, without an image. The findings are from the rules that read only
    facts about the host, and from the rules in ``_OF_HOST``.
    """
    image = ImageFacts(path="", format="")
    rules = tuple(rule for rule in RULES if _is_of_host(rule))
    # The size of the real job is unknown, so use the smallest job whose ranks must find each other.
    request = Request(nodes=1, ranks_per_node=2)
    judged = [
        ask_rules(Case(host, image, request, plan(host, image, request, m)), rules) for m in horovod.MODES
    ]
    advice = {r.id for r in rules if r.advice}
    # Keep only launch modes whose prediction does not depend on the image.
    offers = tuple(m for m in working_modes(tuple(one.prediction for one in judged)) if m in _OFFERED)
    found = _merge_findings((f for one in judged for f in one.findings(offers)), len(judged))
    # A finding is undecided if its rule depends on an unknown fact. Omit undecided findings of rules that
    # only advise, and undecided findings about single launch modes, because they state no fault of the host.
    told = (f for f in found if not (f.undecided and (f.id in advice or f.modes)))
    return _merge_findings((_lower_severity(finding) for finding in told), len(judged))


def _is_of_host(rule: Rule) -> bool:
    if rule.id in _NOT_OF_HOST:
        return False
    asks_host = bool(rule.facts) and all(name.startswith("host.") for name in rule.facts)
    return asks_host or rule.id in _OF_HOST


def _lower_severity(finding: Finding) -> Finding:
    """Change the severity of an error about only some launch modes to ``info``, because other modes may work
    on the host.
    """
    bound = finding.severity == "error" and finding.modes
    return msgspec.structs.replace(finding, severity="info") if bound else finding
