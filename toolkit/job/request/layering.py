"""Merge the settings of a job from settings files, environment variables, a job file and options."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolkit.ambient import read_trusted
from toolkit.data import config_dir
from toolkit.errors import BadInput
from toolkit.files import read_given, read_private
from toolkit.folders import at_home
from toolkit.job.project.plain import without_trainer
from toolkit.job.request.keys import RequiredKey, beside
from toolkit.knowledge import sites
from toolkit.knowledge.lines import line_of
from toolkit.knowledge.sitefields import SILENCE
from toolkit.knowledge.strict import LONGEST, plain_text, tables
from toolkit.launch.request import layers, variables
from toolkit.launch.request.checks import option
from toolkit.launch.request.complete import complete_job
from toolkit.launch.request.layers import JobLayer, MergedJob
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.site import Site
from toolkit.near import suggest_near
from toolkit.program.command import read_command
from toolkit.program.starter_counts import read_starter_counts

PROJECT = "toolkit.toml"
"""The name of the settings file in the current folder."""

_TABLE = "launch"
_SILENCE = "silence"
_KEY = "verify_key"
_KEY_VARIABLE = f"{layers.PREFIX}VERIFY_KEY"
_TABLES = (_TABLE, _SILENCE)
_SUFFIXES = (".yaml", ".yml")
_MOST = 1 << 20
"""The largest size of an env file in bytes; Linux passes at most a few megabytes of variables to a program
(execve(2))."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job merged from options, files and settings, with the source of each value and the job's site."""

    job: JobFile
    origins: Mapping[str, str]
    site: Site | None = None
    key: RequiredKey | None = None
    """The key file that a settings file or ``TOOLKIT_VERIFY_KEY`` requires, or ``None``."""
    project: tuple[str, ...] = ()
    """The names of the fields whose values are from ``toolkit.toml`` in the current folder."""
    note: str = ""
    """The reason why the job uses a partition other than the site's default, or an empty string."""

    def notes(self, *, explain: bool = False) -> list[str]:
        """Return comments for the job script.

        If the job uses a partition other than the site's default, the first comment gives the reason. With
        ``explain``, further comments show each field with its value and its source.
        """
        values = self.job.given_values() if explain else {}
        lines = [f"{name} = {_show_value(values[name])}    <- {self.origins[name]}" for name in values]
        return [*([self.note] if self.note else []), *lines]


def merge_request(
    options: Mapping[str, Any], words: tuple[str, ...], job_file: str | None = None, *, local: bool = False
) -> JobRequest:
    """Merge the defaults, site profile, settings, variables, job file and ``options``; a later source
    overrides the earlier sources.

    ``words`` are the words after ``--``: the arguments of a trainer, or a command. If the name of the trainer
    ends with ``.yaml`` or ``.yml``, the name is the path of a job file. If ``local`` is true, the job runs on
    this machine, and toolkit ignores a site from the settings files and the environment variables.

    Raises:
        BadInput: if a value is wrong; the message names the source, the field and the valid values.
    """
    options = dict(options)
    _check_encoding(options)
    if str(options.get("trainer") or "").endswith(_SUFFIXES):
        if job_file:
            raise BadInput(
                f"{options['trainer']} and --job {job_file}: cannot be combined; give only one job file"
            )
        job_file = options.pop("trainer")
    settings = read_settings()
    above = [*(settings_file.layer for settings_file in settings), layers.from_variables(os.environ)]
    if local:
        above = [replace(layer, fields=msgspec.structs.replace(layer.fields, site=None)) for layer in above]
    above += [_job_file(Path(job_file))] if job_file else []
    above += [layers.check_layer(options, layers.OPTION, {}, strict=True)]
    name = layers.merge(above).job.site
    site = sites.site(name) if name is not None else None
    below = [JobLayer("default", layers.DEFAULTS), *([layers.of_site(name, site)] if name and site else [])]
    merged = layers.merge([*below, *above])
    if words:
        word_fields = JobFile(arguments=words) if merged.job.trainer else JobFile(command=words)
        merged = layers.merge([*below, *above, JobLayer("words after --", word_fields)])
    merged = _with_variables(complete_job(_with_starter_counts(without_trainer(merged)), site))
    key = _required_key(settings)
    project = _of_project(settings, merged.origins, key)
    return JobRequest(merged.job, merged.origins, site, key, project, merged.note)


def _with_starter_counts(merged_job: MergedJob) -> MergedJob:
    """Return the job with the numbers of nodes and ranks from its command, such as ``torchrun --nnodes 2``.

    toolkit uses a number from the command only if no other source sets this number.
    """
    job, origins = merged_job.job, merged_job.origins
    if job.trainer or not job.command:
        return merged_job
    says = dict(read_command(job.command, Path.cwd()).says)
    counts = read_starter_counts(says, job.nodes or 1)._asdict()
    unset = {name: n for name, n in counts.items() if n and origins.get(name) == "default"}
    where = dict.fromkeys(unset, "options of the command")
    return MergedJob(msgspec.structs.replace(job, **unset), {**origins, **where}, merged_job.note)


def announce(*requests: JobRequest, tell: Tell) -> None:
    """Show the names of the fields from ``toolkit.toml`` and the reason for an unusual partition.

    toolkit shows both even with ``--quiet``: the user may have forgotten ``toolkit.toml``, and a job may cost
    more in a partition that is not the site's default.

    Args:
        requests: the jobs of one ``toolkit`` command. All of them use the same ``toolkit.toml``.
        tell: a function that receives each notice.
    """
    if requests[0].project:
        tell.notice(f"{PROJECT}: {', '.join(requests[0].project)}")
    for note in dict.fromkeys(job_request.note for job_request in requests if job_request.note):
        tell.notice(note)


def _of_project(
    settings: list["Settings"], origins: Mapping[str, str], key: RequiredKey | None
) -> tuple[str, ...]:
    for layer, required, _ in settings:
        if layer.source == PROJECT:
            # toolkit merges the variables in `env` one by one. Some of them may be from `toolkit.toml`
            # although the recorded origin of `env` is another source.
            names = (n for n in layer.fields.given_values() if n == "env" or origins.get(n) == layer.where(n))
            used = sorted(names, key=lambda name: layer.lines.get(name, 0))
            return (*used, *((_KEY,) if required and required == key else ()))
    return ()


def required_by_settings() -> RequiredKey | None:
    """Return the key file that a settings file or a variable requires, or ``None``.

    The variable ``TOOLKIT_VERIFY_KEY`` overrides ``toolkit.toml``, which overrides the user's settings file.

    Raises:
        BadInput: if a settings file is wrong.
    """
    return _required_key(read_settings())


def _required_key(settings: list["Settings"]) -> RequiredKey | None:
    # toolkit treats other empty `TOOLKIT_*` variables as unset. If an empty TOOLKIT_VERIFY_KEY counted as
    # unset, toolkit would silently skip the signature check. Instead, merge_demands raises an error.
    if (key := os.environ.get(_KEY_VARIABLE)) is not None:
        return RequiredKey(key, _KEY_VARIABLE)
    return next((settings_file.key for settings_file in reversed(settings) if settings_file.key), None)


def env_file(job: JobFile) -> dict[str, str]:
    """Return the variables in a job's env file, with all their values marked as secret.

    Raises:
        BadInput: if other users may read the file, a line is wrong, or a line names a variable that is not
            set.
    """
    if not job.env_file:
        return {}
    content = read_private(at_home(job.env_file), limit=_MOST, label="--env-file")
    text = content.decode("utf-8", "surrogateescape")
    return dict(variables.parse_env_file(text, os.environ, f"--env-file {job.env_file}"))


def _with_variables(merged_job: MergedJob) -> MergedJob:
    """Return the job with the variables of its env file.

    All values from the env file are marked as secret. Other values are marked if the variable's name suggests
    a secret.
    """
    job, origins = merged_job.job, dict(merged_job.origins)
    env = variables.hide_secrets({**env_file(job), **(job.env or {})})
    if "env_file" in origins:
        origins.setdefault("env", origins["env_file"])
    return MergedJob(msgspec.structs.replace(job, env=env or None), origins, merged_job.note)


def _of_caller(settings: dict[str, Any], source: str) -> dict[str, Any]:
    """Return ``settings`` with a value for each variable in ``env``.

    If ``env`` names a variable without a value (``env: [NAME]``), the value is the variable's value in
    toolkit's environment.
    """
    env, label = settings.get("env"), f"{source}: env"
    if isinstance(env, list) and all(isinstance(item, str) for item in env):
        return {**settings, "env": variables.parse_pairs(env, os.environ, label)}
    if isinstance(env, dict):
        from_caller = variables.from_caller
        filled = {k: from_caller(str(k), os.environ, label) if v is None else v for k, v in env.items()}
        return {**settings, "env": filled}
    return settings


class Settings(NamedTuple):
    """The content of one settings file.

    ``layer`` has the job settings. ``key`` is the public key file that the settings require, or ``None``.
    ``silence`` has the ids of the findings that ``toolkit doctor`` hides, each with the reason.
    """

    layer: JobLayer
    key: RequiredKey | None
    silence: dict[str, str]


def _check_encoding(options: Mapping[str, Any]) -> None:
    """Check that the values of all options are UTF-8, because job scripts and records contain only UTF-8.

    Raises:
        BadInput: if a value is not UTF-8; the error names the option.
    """
    for name, value in options.items():
        if isinstance(value, str) and not _is_utf8(value):
            raise BadInput(f"{option(name)} {value}: the file name is not UTF-8", fix="rename the file")


def _is_utf8(text: str) -> bool:
    """Return whether a command-line word was valid UTF-8. Python decodes invalid bytes to lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_settings() -> list[Settings]:
    """Return the content of the user's settings file and of ``toolkit.toml``, if these files exist.

    Raises:
        BadInput: if a file is wrong, or other users may change it.
    """
    files = (config_dir() / "config.toml", Path(PROJECT))
    return [_settings_file(file) for file in files if os.path.lexists(file)]


def _settings_file(file: Path) -> Settings:
    text = plain_text(read_trusted(file, limit=LONGEST), str(file))
    raw = tables(text, str(file))
    for name, value in raw.items():
        if name not in _TABLES or not isinstance(value, dict):
            choices = " ".join(f"[{table}]" for table in _TABLES)
            raise BadInput(
                f"{file}:{line_of(text, name)}: {name}: unknown table{suggest_near(name, _TABLES)}; "
                f"choices: {choices}"
            )
    silence = raw.get(_SILENCE, {})
    for name, reason in silence.items():
        if not isinstance(reason, str) or not reason.strip() or not reason.isprintable():
            raise BadInput(f"{file}:{line_of(text, f'{_SILENCE}.{name}')}: {_SILENCE}.{name}: {SILENCE}")
    table = raw.get(_TABLE, {})
    lines = {name: line_of(text, f"{_TABLE}.{name}") for name in table}
    key = table.pop(_KEY, None)
    by = f"{file}:{lines.get(_KEY)}: {_KEY}"
    if key is not None and (not isinstance(key, str) or not key):
        raise BadInput(f"{by}: expected the name of a file of public keys")
    required = RequiredKey(beside(file, key), by) if key is not None else None
    return Settings(
        layers.check_layer(_of_caller(table, str(file)), str(file), lines, strict=True), required, silence
    )


def _job_file(file: Path) -> JobLayer:
    # Import YAML here, because only a job file needs it.
    from toolkit.launch.request.jobyaml import read

    text = plain_text(read_given(file, limit=LONGEST, label="--job"), str(file))
    document = read(text, str(file))
    return layers.check_layer(_of_caller(document.values, str(file)), str(file), document.lines, strict=False)


def _show_value(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value) if isinstance(value, tuple) else str(value)
