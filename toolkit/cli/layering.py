"""Read all places that say something of a job: settings, variables, a job file, options; and join them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from toolkit.data import config_dir
from toolkit.errors import BadInput
from toolkit.files import read_given
from toolkit.knowledge import sites
from toolkit.knowledge.lines import line_of
from toolkit.knowledge.strict import LONGEST, plain_text, tables, text_of
from toolkit.launch import layers
from toolkit.launch.checks import option
from toolkit.launch.complete import completed
from toolkit.launch.layers import Layer
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Site
from toolkit.near import near

PROJECT = "toolkit.toml"
"""The file of settings in the folder that a command is given in."""

_TABLE = "launch"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Asked:
    """A job as all places together say it, where each value is from, and the site that it is for."""

    job: JobFile
    origins: Mapping[str, str]
    site: Site | None = None

    def explained(self) -> list[str]:
        """Return a line for each value: the field, what it is and where that is said."""
        said = self.job.said()
        return [f"{name} = {_shown(said[name])}    <- {self.origins[name]}" for name in said]


def asked(
    given: Mapping[str, Any], words: tuple[str, ...], job_file: str | None = None, *, here: bool = False
) -> Asked:
    """Join what holds everywhere with site, settings, variables, job file and ``given`` options.

    ``words`` stood after ``--``: arguments of a trainer, or a command. A trainer that ends in ``.yaml`` is
    a job file. A job that runs ``here`` is for no site, whatever settings name for the others.

    Raises:
        BadInput: one line with place, field and choices.
    """
    given = dict(given)
    _check_encoding(given)
    if str(given.get("trainer") or "").endswith(_SUFFIXES):
        if job_file:
            raise BadInput(f"{given['trainer']} and --job {job_file}: give one job file")
        job_file = given.pop("trainer")
    above = [*_settings(), layers.from_variables(os.environ)]
    if here:
        above = [replace(layer, said=msgspec.structs.replace(layer.said, site=None)) for layer in above]
    above += [_job_file(Path(job_file))] if job_file else []
    above += [layers.checked(given, layers.OPTION, {}, strict=True)]
    name = layers.merge(above).job.site
    site = sites.site(name) if name else None
    below = [Layer("default", layers.DEFAULTS), *([layers.of_site(name, site)] if name and site else [])]
    merged = layers.merge([*below, *above])
    if words:
        said = JobFile(arguments=words) if merged.job.trainer else JobFile(command=words)
        merged = layers.merge([*below, *above, Layer("words after --", said)])
    merged = completed(merged, site)
    return Asked(merged.job, merged.origins, site)


def _check_encoding(given: Mapping[str, Any]) -> None:
    """Refuse a file name that is not UTF-8: neither a job script nor a record could hold it.

    Raises:
        BadInput: naming the option.
    """
    for name, value in given.items():
        if isinstance(value, str) and not _is_utf8(value):
            raise BadInput(f"{option(name)} {value}: the name is not UTF-8", fix="rename the file")


def _is_utf8(text: str) -> bool:
    """Return whether a text of the command line was UTF-8: Python gives other bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _settings() -> list[Layer]:
    found = (config_dir() / "config.toml", Path(PROJECT))
    return [_settings_file(file) for file in found if file.is_file()]


def _settings_file(file: Path) -> Layer:
    text = text_of(file)
    raw = tables(text, str(file))
    for name, value in raw.items():
        if name != _TABLE or not isinstance(value, dict):
            line = line_of(text, name)
            raise BadInput(
                f"{file}:{line}: {name}: there is no such table{near(name, (_TABLE,))}; choices: [{_TABLE}]"
            )
    said = raw.get(_TABLE, {})
    lines = {name: line_of(text, f"{_TABLE}.{name}") for name in said}
    return layers.checked(said, str(file), lines, strict=True)


def _job_file(file: Path) -> Layer:
    # YAML is read for those alone who write a job file.
    from toolkit.launch.jobyaml import read

    text = plain_text(read_given(file, most=LONGEST, label="--job"), str(file))
    found = read(text, str(file))
    return layers.checked(found.values, str(file), found.lines, strict=False)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value) if isinstance(value, tuple) else str(value)
