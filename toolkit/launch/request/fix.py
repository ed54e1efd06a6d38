"""Find changes to a launch command that make the launch work, and describe them as a fix.

The engine predicts the outcome of the changed launch. The changes are a fix only if the outcome is ``ok``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from toolkit.engine.planning.plan import plan
from toolkit.engine.planning.proposal import propose
from toolkit.engine.planning.site_additions import add_site_settings
from toolkit.engine.predict import predict, predict_plan, will_work
from toolkit.knowledge.pmix import is_plugin
from toolkit.knowledge.remedies import Remedy, remedies
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import SCHEMA, Fix, LaunchFix
from toolkit.model.prediction import Mode, Plan, Prediction, Request, Verdict
from toolkit.model.site import Site
from toolkit.versions import within


@dataclass(frozen=True, slots=True)
class FoundFix:
    """A launch command before a fix (``plan``) and after the fix (``fixed_plan``).

    ``plan`` lacks the options that the engine would add. ``prediction`` is the predicted outcome of ``plan``.
    """

    prediction: Prediction
    plan: Plan
    fixed_plan: Plan

    @property
    def is_empty(self) -> bool:
        """Whether the launch works without a change."""
        return self.prediction.outcome == "ok"


def find_fix(
    host: HostFacts, image: ImageFacts, request: Request, site: Site | None = None
) -> FoundFix | None:
    """Return the first fix that makes the launch work, or ``None`` if no fix works.

    toolkit tries the options that the engine chooses for each launch mode, the requested mode first. If no
    mode works, toolkit tries each change in ``remedies.toml``.
    """
    plain = plain_plan(host, image, request, site)
    before = predict_plan(host, image, request, plain)
    if before.outcome == "ok":
        return FoundFix(before, plain, plain)
    verdict = predict(host, image, msgspec.structs.replace(request, mode=None), site)
    modes = _modes(request, verdict)
    for mode in modes:
        prediction = verdict.of(mode)
        if prediction.outcome == "ok" and prediction.plan:
            return FoundFix(before, plain, prediction.plan)
    for mode in modes:
        for fix in _fixes(mode, host) if verdict.of(mode).plan else ():
            changed = plan(host, image, request, mode, site, fix)
            if will_work(host, image, request, changed):
                return FoundFix(before, plain, changed)
    return None


def plain_plan(host: HostFacts, image: ImageFacts, request: Request, site: Site | None = None) -> Plan:
    """Return the plan of the launch command that a user would write without the engine."""
    mode = request.mode or _default(host)
    proposed = propose(host, image, request, mode)
    launcher = proposed.launcher if request.mode or mode == "mpirun-host" else ("srun",)
    plain = Plan(mode=mode, launcher=launcher, inside=proposed.inside, env=dict(request.env))
    return add_site_settings(plain, host, image, request, site)


def fix_of(found_fix: FoundFix, host: HostFacts, image: ImageFacts, verdict: Verdict) -> Fix:
    """Return the content of the fix file for a fix that :func:`find_fix` found."""
    after, before, prediction = found_fix.fixed_plan, found_fix.plan, found_fix.prediction
    titles = {finding.id: finding.title for finding in verdict.findings if not finding.undecided}
    because = (f"{prediction.mode}: {prediction.outcome}: {prediction.because}",)
    return Fix(
        schema=SCHEMA,
        image=image.path.rpartition("/")[2],
        digest=image.digest,
        place=host.place,
        because=(*because, *(f"{i}: {titles[i]}" for i in prediction.findings if i in titles)),
        launch=LaunchFix(
            mode=after.mode,
            container=_more(after.container, before.container),
            env={name: value for name, value in after.env.items() if before.env.get(name) != value},
            unset=_more(after.unset, before.unset),
            binds=_more(after.binds, before.binds),
        ),
    )


def _modes(request: Request, verdict: Verdict) -> list[Mode]:
    wanted = (request.mode, verdict.chosen, *(p.mode for p in verdict.predictions))
    return list(dict.fromkeys(mode for mode in wanted if mode))


def _default(host: HostFacts) -> Mode:
    """Return the launch mode that srun uses without options. On a host without Slurm, return
    ``mpirun-host``.
    """
    if host.slurm is None:
        return "mpirun-host"
    default = host.slurm.mpi_default or ""
    if is_plugin(default):
        return "srun-pmix"
    return "srun-pmi2" if default == "pmi2" else "srun-none"


def _fixes(mode: Mode, host: HostFacts) -> Iterator[LaunchFix]:
    for remedy in remedies():
        if _possible(remedy, host):
            env = _fill_interface(remedy.env, host)
            if env is not None:
                yield LaunchFix(mode=mode, container=remedy.container, env=env, binds=remedy.binds)


def _possible(remedy: Remedy, host: HostFacts) -> bool:
    if not remedy.runtime:
        return True
    runtime = host.runtime
    return runtime is not None and runtime.name == remedy.runtime and within(runtime.version, remedy.version)


def _fill_interface(env: dict[str, str], host: HostFacts) -> dict[str, str] | None:
    """Replace ``{interface}`` by the name of the host's first network interface; return ``None`` if no
    interface is known.
    """
    if not any("{interface}" in value for value in env.values()):
        return env
    if not host.interfaces:
        return None
    return {name: value.replace("{interface}", host.interfaces[0]) for name, value in env.items()}


def _more(words: tuple[str, ...], plain_words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in plain_words)
