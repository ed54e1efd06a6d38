"""Create a study from the user's options, and merge it with an earlier study in the same folder."""

import datetime as dt
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolkit.errors import BadInput, CheckFailed
from toolkit.folders import at_home
from toolkit.job.request.flags import Flags, check_words
from toolkit.job.request.layering import announce, merge_request
from toolkit.launch.request.specify import name_of
from toolkit.launch.request.variables import looks_secret
from toolkit.model.hidden import Hidden, secrets_among, without_secrets
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.study import Scaling, Study
from toolkit.near import suggest_near
from toolkit.run.remote.ssh_file import check_ssh_config
from toolkit.study import collect, folder, proof, study_points
from toolkit.study.advice import advise
from toolkit.study.timeline import tally_events
from toolkit.study.timeline_file import events

_MEASURED = 2
"""The number of epochs that each run trains after the warm-up if the user does not give ``--epochs``."""

_JOB_FILES = (".yaml", ".yml")

_LOCAL = {"image": Path.is_file, "data": Path.is_dir, "trainer": Path.is_file, "env_file": Path.is_file}
"""The job fields that may contain a path on this machine, each with a function that returns whether the path
exists.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """The options of ``toolkit scale`` that describe a study.

    ``ranks`` contains the values of ``--ranks``, such as ``(1, 2, 4)``. ``over`` contains the values of
    ``--nodes``. ``words`` are the words after ``--``. ``values`` are the options of ``toolkit launch`` that
    the user gives to ``toolkit scale``, by job field.
    """

    values: Mapping[str, Any]
    words: tuple[str, ...]
    ranks: tuple[int, ...]
    over: tuple[int, ...] | None
    per_node: int | None
    repeat: int
    scaling: Scaling
    batch: int | None
    epochs: int | None
    warm_up: int
    compare: str | None
    prove: Path | None
    profile: bool
    pattern: str | None
    unit: str
    host: str | None
    cluster: str | None
    ssh_config: Path | None


def study_of(options: StudyOptions, flags: Flags, tell: Tell) -> Study:
    """Return the study that the options describe, after toolkit has checked the options of all runs.

    Raises:
        BadInput: if an option is wrong.
        CheckFailed: if the timeline of ``--prove`` is too short to suggest settings.
    """
    if options.ssh_config:
        check_ssh_config(options.ssh_config)
    compare, values = _parse_comparison(options.compare)
    settings = _series_of_suggestion(options)
    trainer = options.values.get("trainer") or compare == "trainer"
    for name in values if compare == "trainer" else [str(trainer or "")]:
        _check_no_job_file(name)
    study = Study(
        name="",
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        scaling=options.scaling,
        sizes=study_points.sizes(options.ranks, options.over or (), options.per_node),
        repeats=options.repeat,
        compare=compare,
        values=values or tuple(settings),
        settings=settings,
        warm_up=options.warm_up,
        epochs=(options.epochs or options.warm_up + _MEASURED) if trainer else options.epochs,
        batch=options.batch,
        profile=options.profile,
        pattern=options.pattern or "",
        unit=options.unit,
        said=_without_secrets(_with_full_paths(options.values)),
        secrets=tuple(secrets_of(options.values)),
        words=options.words,
        host=options.host,
        cluster=options.cluster,
        ssh_config=str(options.ssh_config.resolve()) if options.ssh_config else None,
    )
    study_points.check(study)
    if study.pattern:
        collect.compile_pattern(study.pattern)
    _check_settings(study)
    requests = [merge_request(*study_points.job_fields(study, point)) for point in study_points.points(study)]
    announce(*requests, tell=tell)
    for request in requests:
        check_words(request, flags)
    name = "-".join(values) if compare == "trainer" else name_of(requests[0].job)
    return msgspec.structs.replace(study, name=name)


def secrets_of(options: Mapping[str, Any]) -> dict[str, Hidden]:
    """Return the secret variables among the ``--env`` options; toolkit sets these variables in every run."""
    return secrets_among(options.get("env") or {})


def _without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without secret values, because users may share the folder of a study."""
    env = without_secrets(options.get("env") or {})
    return {
        **{name: value for name, value in options.items() if name != "env"},
        **({"env": env} if env else {}),
    }


def _check_no_job_file(trainer: str) -> None:
    if trainer.endswith(_JOB_FILES):
        raise BadInput(
            f"{trainer}: toolkit scale does not accept a job file",
            fix="name the trainer, and give the settings of the job file as options, as in "
            "`toolkit scale mnist --ranks 1,2`",
        )


def _with_full_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with absolute paths, so that a user can resume the study from any folder.

    toolkit does not change a value that is a path on the cluster. It also does not change the names of
    trainers and recipes that are part of toolkit.
    """
    full = dict(options)
    for field, is_there in _LOCAL.items():
        value = str(full.get(field) or "")
        path = at_home(value)
        # A file may have the name of a trainer of toolkit, so only a name that ends with `.py` is a path.
        if value and is_there(path) and (field != "trainer" or path.suffix == ".py"):
            full[field] = str(path.resolve())
    return full


def _check_settings(study: Study) -> None:
    """Check the job fields that the user sets in a settings file or an environment variable.

    Raises:
        BadInput: if the study cannot use such a field; the message names the file and line, or the variable.
    """
    fields, _ = study_points.job_fields(study, study_points.points(study)[0])
    request = merge_request(fields, ())
    job, origins = request.job, request.origins
    if job.trainer and not study_points.trainer_of(study):
        raise BadInput(
            f"{origins['trainer']}: the trainer {job.trainer} conflicts with the command after --",
            fix="remove this setting of the trainer, or run the trainer instead of the command: "
            f"`toolkit scale {job.trainer}`",
        )
    if job.arguments and not study.words:
        raise BadInput(
            f"{origins['arguments']}: toolkit scale accepts arguments only on the command line",
            fix=f"give the arguments after the options: `-- {shlex.join(job.arguments)}`",
        )
    if study.profile and job.workdir:
        raise BadInput(
            f"{origins['workdir']}: --profile conflicts with the working directory {job.workdir}, because "
            "Horovod writes its timeline there, and toolkit reads the timeline from the job's folder",
            fix="leave out the working directory or `--profile`",
        )


def join_studies(study_folder: Path, study: Study) -> Study:
    """Return the new study ``study``, merged with the earlier study in ``study_folder``.

    If ``study_folder`` contains no study, return the new study. The new study may only add runs to the
    earlier study. The result has the new study's values of options that do not affect the performance
    figures, such as the time limit.

    Raises:
        BadInput: if the studies differ in an option that affects the performance figures.
    """
    if not folder.is_study(study_folder):
        return study
    old = folder.load(study_folder)
    old = msgspec.structs.replace(old, said=_with_full_paths(old.said))
    if differs := study_points.differences(old, study):
        raise BadInput(
            f"{study_folder} contains an earlier study, which differs from this study in "
            f"{', '.join(differs)}",
            fix="give this study another folder with `--study`",
            detail=[
                f"{name}: {before!r} in the earlier study, {now!r} in this study"
                for name, (before, now) in differs.items()
            ],
        )
    both = msgspec.structs.replace(
        old,
        sizes=tuple(sorted({*old.sizes, *study.sizes})),
        repeats=max(old.repeats, study.repeats),
        values=tuple(dict.fromkeys((*old.values, *study.values))),
        profile=old.profile or study.profile,
        said=study.said,
        secrets=study.secrets,
        ssh_config=study.ssh_config,
    )
    study_points.check(both)
    return both


def _series_of_suggestion(options: StudyOptions) -> dict[str, dict[str, str]]:
    """Return the environment variables of each series of runs, by the name of the series.

    toolkit reads the timeline that the user gives with ``--prove``, and suggests settings of Horovod. One
    series uses these settings, one series uses the default settings, and one series uses Horovod's
    autotuning. Without ``--prove``, the result is empty.

    Raises:
        BadInput: if ``--prove`` conflicts with other options.
        CheckFailed: if the timeline has too few allreduce operations.
    """
    if options.prove is None:
        return {}
    if options.compare:
        raise BadInput(
            "--prove and --compare: cannot be combined, because --prove chooses the settings to compare"
        )
    if min(options.ranks) < 2:
        raise BadInput(
            "--prove: a run with one rank has no allreduce operations to compare",
            fix="use at least 2 ranks in each run, as in `--ranks 2,4`",
        )
    advice = advise(tally_events(events(options.prove)))
    if advice is None:
        raise CheckFailed(
            f"{options.prove}: the timeline has too few allreduce operations, "
            "so toolkit cannot suggest settings"
        )
    return proof.settings(advice)


def _parse_comparison(text: str | None) -> tuple[str, tuple[str, ...]]:
    """Split the value of ``--compare``, for example ``strategy=single,horovod``, into a field and its values.

    Return an empty field and no values if the user does not give ``--compare``. The field is a job field, or
    the name of an environment variable in capitals.

    Raises:
        BadInput: if the text does not have the form ``FIELD=A,B``, the field does not exist, or the field
            looks like the name of a secret.
    """
    if text is None:
        return "", ()
    name, separator, rest = text.partition("=")
    values = tuple(dict.fromkeys(value.strip() for value in rest.split(",") if value.strip()))
    if not separator or not values:
        raise BadInput(f"--compare {text}: expected FIELD=A,B, as in mode=srun-pmix,gloo")
    if looks_secret(name):
        raise BadInput(
            f"--compare {name}: {name} looks like the name of a secret, "
            "and toolkit stores the compared values in the study",
            fix=f"set the variable in all runs instead: `--env {name}`",
        )
    field = name if name.isupper() else name.replace("-", "_")
    if not name.isupper() and field not in JobFile.__struct_fields__:
        raise BadInput(
            f"--compare {name}: not an option of toolkit launch"
            f"{suggest_near(field, JobFile.__struct_fields__)}",
            fix="to compare values of an environment variable, give a name in capitals, as in "
            "`--compare HOROVOD_CYCLE_TIME=1,5`",
        )
    return field, values
