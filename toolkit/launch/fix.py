"""Find what has to be changed in a launch so that it works, and apply such a change; pure.

What is proposed was judged by the engine first: a fix that is not predicted to work is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from toolkit.engine.plans import propose
from toolkit.engine.predict import foresee, predict
from toolkit.knowledge.pmix import is_plugin
from toolkit.knowledge.remedies import Remedy, remedies
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.fix import SCHEMA, Fix, LaunchFix
from toolkit.model.prediction import Mode, Plan, Prediction, Request, Verdict
from toolkit.versions import within


@dataclass(frozen=True, slots=True)
class Mended:
    """A launch as a person would write it, and one that works."""

    before: Prediction
    plan: Plan
    after: Plan

    @property
    def nothing(self) -> bool:
        """Say that it works as it is."""
        return self.before.outcome == "ok"


def mend(host: HostFacts, image: ImageFacts, request: Request) -> Mended | None:
    """Return the smallest change that works, in the mode that was asked for if it can; ``None`` for none."""
    plain = plain_plan(host, image, request)
    before = foresee(host, image, request, plain)
    if before.outcome == "ok":
        return Mended(before, plain, plain)
    verdict = predict(host, image, msgspec.structs.replace(request, mode=None))
    modes = _modes(request, verdict)
    for mode in modes:
        prediction = verdict.of(mode)
        if prediction.outcome == "ok" and prediction.plan:
            return Mended(before, plain, prediction.plan)
    for mode in modes:
        if start := verdict.of(mode).plan:
            for changed in _changed(start, host):
                if foresee(host, image, request, changed).outcome == "ok":
                    return Mended(before, plain, changed)
    return None


def plain_plan(host: HostFacts, image: ImageFacts, request: Request) -> Plan:
    """Return the launch that a person writes who knows nothing of MPI: without any option of the engine's."""
    mode = request.mode or _default(host)
    proposed = propose(host, image, request, mode)
    launcher = proposed.launcher if request.mode or mode == "mpirun-host" else ("srun",)
    return Plan(mode=mode, launcher=launcher, inside=proposed.inside, env=dict(request.env))


def fix_of(mended: Mended, host: HostFacts, image: ImageFacts, verdict: Verdict) -> Fix:
    """Return what a file keeps of a change."""
    plan, before = mended.after, mended.plan
    titles = {finding.id: finding.title for finding in verdict.findings if not finding.undecided}
    because = (f"{mended.before.mode}: {mended.before.outcome}: {mended.before.because}",)
    return Fix(
        schema=SCHEMA,
        image=image.path.rpartition("/")[2],
        digest=image.digest,
        place=host.place,
        because=(*because, *(f"{i}: {titles[i]}" for i in mended.before.findings if i in titles)),
        launch=LaunchFix(
            mode=plan.mode,
            container=_more(plan.container, before.container),
            env={name: value for name, value in plan.env.items() if before.env.get(name) != value},
            unset=_more(plan.unset, before.unset),
            binds=_more(plan.binds, before.binds),
        ),
    )


def fixed(plan: Plan, fix: Fix) -> Plan:
    """Return a plan with what a fix adds to it."""
    add = fix.launch
    return msgspec.structs.replace(
        plan,
        container=(*plan.container, *_more(add.container, plan.container)),
        env={**plan.env, **add.env},
        unset=(*plan.unset, *_more(add.unset, plan.unset)),
        binds=(*plan.binds, *_more(add.binds, plan.binds)),
    )


def judged(verdict: Verdict, fix: Fix, host: HostFacts, image: ImageFacts, request: Request) -> Verdict:
    """Return the verdict in which the mode of a fix is launched with it, and chosen if that works."""
    mode = fix.launch.mode
    plan = fixed(propose(host, image, request, mode), fix)
    prediction = foresee(host, image, request, plan)
    others = tuple(prediction if p.mode == mode else p for p in verdict.predictions)
    return msgspec.structs.replace(
        verdict, predictions=others, chosen=mode if prediction.outcome == "ok" else None
    )


def _modes(request: Request, verdict: Verdict) -> list[Mode]:
    wanted = (request.mode, verdict.chosen, *(p.mode for p in verdict.predictions))
    return list(dict.fromkeys(mode for mode in wanted if mode))


def _default(host: HostFacts) -> Mode:
    """Return the mode that an srun without options is in; without Slurm there is only an mpirun."""
    if host.slurm is None:
        return "mpirun-host"
    default = host.slurm.mpi_default or ""
    if is_plugin(default):
        return "srun-pmix"
    return "srun-pmi2" if default == "pmi2" else "srun-none"


def _changed(plan: Plan, host: HostFacts) -> Iterator[Plan]:
    for remedy in remedies():
        if _possible(remedy, host):
            env = _filled(remedy.env, host)
            if env is not None:
                yield fixed(plan, _as_fix(plan.mode, remedy, env))


def _possible(remedy: Remedy, host: HostFacts) -> bool:
    if not remedy.runtime:
        return True
    runtime = host.runtime
    return runtime is not None and runtime.name == remedy.runtime and within(runtime.version, remedy.version)


def _filled(env: dict[str, str], host: HostFacts) -> dict[str, str] | None:
    """Put the network interface into values that need it; ``None`` where none is known."""
    if not any("{interface}" in value for value in env.values()):
        return env
    if not host.interfaces:
        return None
    return {name: value.replace("{interface}", host.interfaces[0]) for name, value in env.items()}


def _as_fix(mode: Mode, remedy: Remedy, env: dict[str, str]) -> Fix:
    launch = LaunchFix(mode=mode, container=remedy.container, env=env, binds=remedy.binds)
    return Fix(schema=SCHEMA, launch=launch)


def _more(words: tuple[str, ...], than: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in than)
