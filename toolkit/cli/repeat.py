"""``launch --from-job``: the job of a record once more, with what options change of it."""

import msgspec

from toolkit.cli.launching import Call
from toolkit.cli.prepare import Prepared, to_record
from toolkit.errors import BadInput
from toolkit.knowledge import sites
from toolkit.launch import script, trainers
from toolkit.launch.again import Again, again, check_image
from toolkit.launch.layers import OPTION, checked
from toolkit.launch.limits import check_limits
from toolkit.launch.surroundings import Around
from toolkit.model.job import JobRecord, JobSpec
from toolkit.model.jobfile import JobFile
from toolkit.run.command import Runner

_NEW = ("trainer", "image", "mode", "data", "directory", "site")
"""What makes another job of it, of which nothing would be known."""


def repeated(runner: Runner, record: JobRecord, call: Call) -> Prepared:
    """Return the job of a record, to be launched in a folder of its own from the very same image.

    Raises:
        BadInput: for an option that would make another job of it.
        CheckFailed: if the image there has changed.
        Missing: if it is gone.
    """
    said = checked(call.said, OPTION, {}, strict=True).said
    for name in _NEW:
        if getattr(said, name) is not None:
            raise BadInput(
                f"--{name} with --from-job: the job is repeated from the same image in the same mode",
                fix="launch without --from-job to choose anew",
            )
    check_image(runner, record)
    old = again(record)
    spec = _changed(old, said, call.words)
    site = sites.site(spec.site) if spec.site else None
    if site:
        check_limits(spec, site, spec.site)
    made = to_record(runner.place, spec, record.plan, record.image_digest)
    made = msgspec.structs.replace(
        made, predicted=record.predicted, forced=record.forced, image_check=record.image_check
    )
    because = f"as in {record.key}, of which '{record.predicted}' was predicted"
    runtime = site.container.command if site else _runtime(runner)
    return Prepared(made, script.job_script(spec, record.plan, because, runtime, Around(site)), ())


def _changed(old: Again, said: JobFile, words: tuple[str, ...]) -> JobSpec:
    """Return the specification with what options say; ``words`` take the place of those after ``--``."""
    spec = old.spec
    fields = {name: value for name, value in said.said().items() if name in JobSpec.__struct_fields__}
    if "env" in fields:
        fields["env"] = {**spec.env, **(said.env or {})}
    if said.binds:
        fields["binds"] = (*spec.binds, *said.binds)
    new = msgspec.structs.replace(spec, **fields)
    arguments = words or old.arguments
    if not spec.trainer:
        return msgspec.structs.replace(new, command=arguments)
    known = trainers.find(spec.trainer).at(spec.command[1])
    given = spec.command[: len(known.program) + 2]
    data = spec.command[len(given)] if given[-1] == "--data" else ""
    strategy = said.strategy or trainers.usual_strategy(new.ranks)
    command = known.command(data, spec.directory, strategy, arguments)
    return msgspec.structs.replace(new, command=command)


def _runtime(runner: Runner) -> str:
    """Return what containers are started with there."""
    from toolkit.launch.plan import runtime_of
    from toolkit.probe.probe import probe

    return runtime_of(probe(runner))
