"""``toolkit launch --from-job``: launch a recorded job again, with the changes that options request."""

import os
from typing import cast

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.engine.planning.site_additions import environment
from toolkit.engine.predict import predict
from toolkit.errors import BadInput
from toolkit.job.call import Call
from toolkit.job.prepare import Prepared, make_record
from toolkit.job.request.gate import clear_again, demand_for
from toolkit.job.request.inputs import FACTS
from toolkit.job.request.layering import env_file
from toolkit.knowledge import sites
from toolkit.launch import loaded
from toolkit.launch.jobscript import script
from toolkit.launch.jobscript.choose import ModeChoice, choose
from toolkit.launch.request import trainers
from toolkit.launch.request.complete import OUTPUT_OF_ARRAY
from toolkit.launch.request.layers import DEFAULTS, OPTION, check_layer
from toolkit.launch.request.specify import request_of
from toolkit.launch.request.variables import secrets_of_record
from toolkit.launch.sites import partition
from toolkit.launch.tracking.relaunch import Relaunch, relaunch, trainer_options
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.hidden import Hidden, secrets_among, without_secrets
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Outcome, Prediction, ProgramName, Request
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.probe.asking import of_job
from toolkit.probe.probe import probe
from toolkit.run.command import Runner

_NEW = (
    "trainer", "image", "env_image", "runtime", "mode", "program", "data", "directory", "site", "sweep",
    "sweep_parallel",
)  # fmt: skip
"""The options that conflict with ``--from-job``, because their values come from the recorded job."""


def repeat_job(runner: Runner, record: JobRecord, call: Call, tell: Tell, *, remote: bool) -> Prepared:
    """Return a recorded job that is ready to launch again, in a new folder and from the recorded image.

    ``remote`` is true if the host of the job is another machine.

    Raises:
        BadInput: if an option conflicts with ``--from-job``.
        CheckFailed: if the image has changed, or a required signature is missing or wrong.
        Missing: if the image no longer exists.
    """
    changes = check_layer(call.values, OPTION, {}, strict=True).fields
    env = {**env_file(changes), **(changes.env or {})}
    changes = msgspec.structs.replace(changes, env=env or None)
    for name in _NEW:
        if getattr(changes, name) is not None:
            option = name.replace("_", "-")
            raise BadInput(
                f"--{option}: cannot be combined with --from-job, which uses the value of the recorded job",
                fix="to choose another value, launch without `--from-job`",
            )
    old = relaunch(record)
    spec = _apply_changes(old, changes, call.words)
    secrets = secrets_of_record(spec.secrets, secrets_among(env), os.environ)
    demand = demand_for(record.spec.site, call.flags.verify_key, call.flags.no_verify)
    cleared, facts = clear_again(runner, record, demand, tell, remote=remote)
    site = sites.site(spec.site) if spec.site else None
    if site:
        partition.choose(spec, site, spec.site)
    tell.step(f"Probing {runner.place}")
    host = loaded.with_runtime(probe(runner, of_job(spec.partition)), site, spec.modules, spec.runtime)
    image = facts or _facts_beside(runner, record)
    request = request_of(spec, {**spec.env, **secrets}, record.mode, site, _program(record))
    if image:
        verdict = predict(host, image, request, site, record.fix)
        # If the recorded job completed, launch it again even if toolkit now predicts a failure.
        force = call.flags.force or record.forced or record.state == "completed"
        choice = choose(verdict, record.mode, force=force)
    else:
        tell.step(
            f"toolkit found no facts about the image, so the new job starts its ranks as {record.key} did"
        )
        choice = _as_before(record, request, host, site)
    new_record = make_record(runner.place, spec, choice, cleared)
    new_record = msgspec.structs.replace(new_record, fix=record.fix, env_digest=record.env_digest)
    because = f"as in {record.key}; {choice.because if image else choice.prediction.why}"
    runtime = loaded.command_of(host, site, spec.runtime)
    copies = _copies(runner, record) if spec.broadcast == "on" else {}
    text = script.job_script(spec, choice.plan, because, runtime, site, image, (cleared.note,), copies)
    return Prepared(new_record, text, (), runtime, secrets)


def _copies(runner: Runner, record: JobRecord) -> dict[str, tuple[str, int]]:
    """Return path → (digest, size in bytes) for each image file that the job copies to its nodes."""
    digests = {record.spec.image: record.image_digest, record.spec.env_image: record.env_digest}
    return {path: (digest, runner.size(path)) for path, digest in digests.items() if path}


def _program(record: JobRecord) -> ProgramName | None:
    """Return the recorded kind of program, or ``None`` if the kind is unknown.

    Older releases of toolkit recorded every program as ``mpi``, so this word says nothing about the kind.
    """
    return None if record.plan.program == "mpi" else record.plan.program


def _as_before(record: JobRecord, request: Request, host: HostFacts, site: Site | None) -> ModeChoice:
    """Return the recorded launch, with the bind mounts and the environment variables of the new job."""
    image = ImageFacts(path=record.spec.image, format="sif")
    prepared = msgspec.structs.replace(
        record.plan,
        env=record.plan.env | environment(record.plan, host, image, request, site),
        binds=tuple(dict.fromkeys((*_remove_binds(record.plan.binds, record.spec.binds), *request.binds))),
    )
    because = f"toolkit predicted '{record.predicted}'"
    outcome = cast("Outcome", record.predicted)
    return ModeChoice(
        Prediction(mode=record.mode, outcome=outcome, because=because, plan=prepared), prepared, record.forced
    )


def _remove_binds(binds: tuple[str, ...], job_binds: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(bind for bind in binds if bind not in job_binds)


def _apply_changes(old: Relaunch, changes: JobFile, words: tuple[str, ...]) -> JobSpec:
    """Return the recorded job specification with the changes that the options request. If ``words`` are
    given, they replace the trainer's arguments or the command.
    """
    spec = old.spec
    fields = {
        name: value for name, value in changes.given_values().items() if name in JobSpec.__struct_fields__
    }
    if "env" in fields:
        both = {**dict.fromkeys(spec.secrets, Hidden()), **spec.env, **(changes.env or {})}
        fields |= {"env": without_secrets(both), "secrets": tuple(secrets_among(both))}
    if changes.binds:
        fields["binds"] = (*spec.binds, *changes.binds)
    if changes.array and not spec.array and spec.output == DEFAULTS.output:
        fields.setdefault("output", OUTPUT_OF_ARRAY)
    new = msgspec.structs.replace(spec, **fields)
    arguments = words or old.arguments
    if not spec.trainer:
        return msgspec.structs.replace(new, command=arguments)
    known = trainers.find(spec.trainer).at(spec.command[1])
    options, _ = trainer_options(spec)
    strategy = changes.strategy or _strategy(options.get("--strategy", ""), spec.ranks, new.ranks)
    command = known.command(options.get("--data", ""), spec.directory, strategy, arguments)
    return msgspec.structs.replace(new, command=command)


def _strategy(strategy: str, old_ranks: int, new_ranks: int) -> str:
    """Return the training strategy of the repeated job.

    If the recorded job had the default strategy for its number of ranks, the result is the default strategy
    for the new number of ranks. Otherwise, the result is the recorded strategy.
    """
    usual = trainers.usual_strategy
    return usual(new_ranks) if strategy in {"", usual(old_ranks)} else strategy


def _facts_beside(runner: Runner, record: JobRecord) -> ImageFacts | None:
    """Return the facts about the recorded image from the facts file that is beside the image on the host.

    The result is ``None`` if the facts file is missing or invalid, or describes an image with another digest.
    """
    try:
        facts = msgspec.json.decode(runner.read(f"{record.spec.image}{FACTS}"), type=ImageFacts)
    except DECODE_ERRORS:
        return None
    return facts if facts.digest == record.image_digest else None
