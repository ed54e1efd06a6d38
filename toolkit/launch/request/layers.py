"""Merge the settings of a job from several sources; a later source overrides an earlier source."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge.strict import shape
from toolkit.launch.request.checks import ValueFault, objections, option
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Site

PREFIX = "TOOLKIT_"
"""The prefix of environment variables that set a job field, such as ``TOOLKIT_ACCOUNT``."""

OPTION = "option"
"""The value of ``JobLayer.source`` for settings from the command line."""

_SHOWN = 20
"""Maximum number of valid choices that an error lists."""

_LISTS = {"arguments", "command", "modules", "sbatch", "binds", "env", "sweep"}
"""The fields with several values; an environment variable can set only a field with one value."""


@dataclass(frozen=True, slots=True)
class JobLayer:
    """The settings from one source; for a file, ``lines`` maps a field to its line in the file."""

    source: str
    fields: JobFile
    lines: Mapping[str, int] = field(default_factory=dict)

    def where(self, name: str) -> str:
        """Return the source of a field: an option, a variable, or a file with the field's line."""
        if self.source == OPTION:
            return option(name)
        if self.source == PREFIX:
            return f"{PREFIX}{name.upper()}"
        line = self.lines.get(name)
        return f"{self.source}:{line}" if line else self.source


@dataclass(frozen=True, slots=True)
class MergedJob:
    """A job merged from all sources, and the source of each value.

    ``note`` is empty, or says why toolkit chose a partition that is neither the user's choice nor the site's
    default.
    """

    job: JobFile
    origins: Mapping[str, str]
    note: str = ""


DEFAULTS = JobFile(
    image="tf2.21-cpu",
    nodes=1,
    ranks_per_node=1,
    time="01:00:00",
    output="output.log",
    preflight=True,
)
"""The default values of job fields."""


def merge(layers: Iterable[JobLayer]) -> MergedJob:
    """Return the job; each field has the value from the last source that sets the field.

    toolkit merges the variables in ``env`` by name. A later ``command`` replaces a ``trainer`` and its
    ``arguments``, and a later ``trainer`` replaces a ``command``.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        layer_values = layer.fields.given_values()
        for new, old in (("trainer", ("command",)), ("command", ("trainer", "arguments"))):
            for name in old if new in layer_values else ():
                values.pop(name, None)
                origins.pop(name, None)
        for name, value in layer_values.items():
            values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
            origins[name] = layer.where(name)
    return MergedJob(JobFile(**values), origins)


def check_layer(
    settings: Mapping[str, Any], source: str, lines: Mapping[str, int], *, strict: bool
) -> JobLayer:
    """Check the settings of one source, and return the settings with their source.

    If ``strict`` is true, each value must have the type of its field. If ``strict`` is false, toolkit also
    accepts a text such as ``"2"`` for a number.

    Raises:
        BadInput: if a value is wrong; the message names the source, the field and the valid values.
    """
    try:
        job_file = msgspec.convert(
            {k: v for k, v in settings.items() if v is not None}, JobFile, strict=strict
        )
    except msgspec.ValidationError as error:
        found = shape(str(error), JobFile)
        # The list of all fields of a job file would be longer than a terminal shows.
        shown = found.choices if len(found.choices) <= _SHOWN else (*found.choices[:_SHOWN], "…")
        choices = f"; choices: {', '.join(shown)}" if shown else ""
        name = found.path.partition("[")[0]
        raise BadInput(_at(source, lines, name, f"{_in_words(found.what)}{choices}")) from error
    for bad in objections(job_file.given_values()):
        raise _refusal(bad, source, lines)
    for name, what in _conflicts(job_file):
        raise BadInput(_at(source, lines, name, what))
    return JobLayer(source, job_file, lines)


def _conflicts(job_file: JobFile) -> Iterator[tuple[str, str]]:
    """Yield each field that conflicts with another field of the same source, and the fault."""
    if job_file.command is not None and job_file.trainer is not None:
        yield "command", "cannot be combined with a trainer; leave out one of them"
    if job_file.command is not None and job_file.arguments is not None:
        yield "arguments", "only a trainer has arguments; add your arguments to the command"


def from_variables(environment: Mapping[str, str]) -> JobLayer:
    """Return the settings in environment variables such as ``TOOLKIT_ACCOUNT``, for fields with one value.

    Raises:
        BadInput: if a value is wrong; the message names the variable.
    """
    fields = [name for name in JobFile.__struct_fields__ if name not in _LISTS]
    values = {name: environment.get(f"{PREFIX}{name.upper()}") or None for name in fields}
    return check_layer(values, PREFIX, {}, strict=False)


def of_site(name: str, site: Site) -> JobLayer:
    """Return the default settings in a site profile, without the profile's sbatch options.

    toolkit adds these sbatch options when it writes the job script.
    """
    default = site.defaults
    job_file = JobFile(
        partition=default.partition or None,
        account=default.account or None,
        qos=default.qos or None,
        constraint=default.constraint or None,
        time=default.time or None,
        memory=default.memory or None,
        cpus_per_rank=default.cpus_per_rank,
        exclusive=default.exclusive or None,
        licenses=default.licenses or None,
        directory=site.directory or None,
    )
    for bad in objections(job_file.given_values()):
        raise _refusal(bad, f"site {name}", {})
    return JobLayer(f"site {name}", job_file)


def _in_words(fault: str) -> str:
    """Translate a fault such as "expected 'int', got 'str'" into an instruction: "write a whole number".

    If ``fault`` does not start with an expected type, return ``fault`` unchanged.
    """
    kinds = {"int": "a whole number", "bool": "true or false", "array": "a list", "str": "a text",
             "object": "names and values, as in NAME: VALUE"}  # fmt: skip
    match = re.match(r"expected '(?P<kind>\w+)(?: \| null)?'", fault)
    return f"write {kinds[match['kind']]}" if match and match["kind"] in kinds else fault


def _refusal(fault: ValueFault, source: str, lines: Mapping[str, int]) -> BadInput:
    name = f"{fault.field}.{fault.value}" if fault.field == "env" else fault.field
    value = repr(fault.value) if isinstance(fault.value, str) else str(fault.value)
    return BadInput(_at(source, lines, name, f"{value}: {fault.message}"))


def _at(source: str, lines: Mapping[str, int], name: str, fault: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in name)
    text = "".join(c if c.isprintable() else "?" for c in fault)
    if source == PREFIX:
        return f"{PREFIX}{shown.upper()}: {text}"
    if source == OPTION:
        return f"{option(shown.partition('.')[0])} {text}"
    line = lines.get(name) or lines.get(name.partition(".")[0]) or 0
    return f"{source}{f':{line}' if line else ''}: {f'{shown}: ' if shown else ''}{text}"
