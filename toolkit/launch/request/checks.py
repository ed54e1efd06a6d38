"""Check the values of a job, so that neither Slurm nor the shell misreads a value in the job script."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from toolkit import nodelist
from toolkit.errors import BadInput
from toolkit.knowledge import sbatch
from toolkit.launch.request import numbers, sweep_values
from toolkit.model.job import JobSpec
from toolkit.model.jobfile import FIELDS, JobField, ValueForm
from toolkit.runtime.apptainer import IMAGE_BIND

_NAME = r"[A-Za-z0-9][A-Za-z0-9._+@=-]{0,127}"
_DURATION = r"\d+-\d{1,2}(:\d{1,2}){0,2}|\d+(:\d{1,2}){0,2}"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2})?"
_MAILS = (
    "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT",
    "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
)  # fmt: skip
_AFTER = r"after(any|notok|ok|corr|burstbuffer)?"
_DEPENDENCY = rf"(singleton|{_AFTER}(:\d+(_(\d+|\*))?(\+\d+)?)+)"


_NAMES = ValueForm(
    _NAME,
    "a name has at most 128 letters, digits and . _ + @ = -, and starts with a letter or digit",
)
_SEVERAL = ValueForm(rf"{_NAME}(,{_NAME})*", f"{_NAMES.rule}; separate several names with commas")
_MEMORY = ValueForm(
    r"\d+[KMGT]?", "write a whole number and K, M, G or T, as in 16G; without a letter, the unit is M"
)
_NODES = ValueForm(nodelist.FORM, nodelist.RULE)
_OUTPUT = ValueForm(
    # Slurm does not create a folder for the output, so a relative path must not contain a folder.
    # A job that cannot write its output fails without a message.
    r"(/|(?!-)(?!.*/))([A-Za-z0-9._+=@,/-]|%\d{0,2}[AaJjNnstuxb]|%%)+",
    "write a file name or a full path with letters, digits, `._+=@,-` and patterns such as %j; "
    "for a percent sign, write %%",
)

_FORMS: Mapping[str, ValueForm] = {
    "name": _NAMES,
    "names": _SEVERAL,
    "time": ValueForm(
        rf"{_DURATION}|UNLIMITED|INFINITE", "use MINUTES, HH:MM:SS or DAYS-HH:MM:SS, as sbatch(1) describes"
    ),
    "memory": _MEMORY,
    "constraint": ValueForm(
        r"[A-Za-z0-9(\[][A-Za-z0-9._+@=&|*:,()\[\]-]*",
        "write features without spaces, and put `&`, `|` or `,` between features, as sbatch(1) describes",
    ),
    "nodes": _NODES,
    "licenses": ValueForm(
        r"[A-Za-z0-9][A-Za-z0-9._@:,|=+-]*", "write NAME[@SERVER][:COUNT], separated by commas"
    ),
    "mail_type": ValueForm(
        rf"({'|'.join(_MAILS)})(,({'|'.join(_MAILS)}))*",
        f"write one or more of these, separated by commas: {', '.join(_MAILS)}",
    ),
    "mail_user": ValueForm(r"[A-Za-z0-9][A-Za-z0-9._%+@-]*", "write one email address or one user name"),
    "array": ValueForm(
        r"\d+(-\d+(:\d+)?)?(,\d+(-\d+(:\d+)?)?)*(%\d+)?", "write numbers and ranges: 0-7, 1,3,5 or 0-99%10"
    ),
    "dependency": ValueForm(
        rf"{_DEPENDENCY}([,?]{_DEPENDENCY})*",
        "write singleton or TYPE:JOB[:JOB…]; types: after, afterany, afternotok, afterok, aftercorr",
    ),
    "begin": ValueForm(
        rf"now(\+\d+(seconds?|minutes?|hours?|days?|weeks?)?)?|midnight|noon|fika|teatime|today|tomorrow|"
        rf"{_CLOCK}|\d{{4}}-\d{{2}}-\d{{2}}(T{_CLOCK})?",
        "write a time such as now+2hours, 20:00, tomorrow or 2026-12-24T18:00",
    ),
    "gpu": ValueForm(r"[A-Za-z0-9][A-Za-z0-9._-]*", "write the GPU type as in Slurm's GRES, such as v100"),
    "gpu_bind": ValueForm(
        r"(verbose,)?(closest|none|single:\d+|per_task:\d+|map_gpu:[\d,*]+|mask_gpu:[\dA-Fa-fx,*]+)",
        "choices: none, closest, single:N, per_task:N, map_gpu:LIST, mask_gpu:LIST",
    ),
    "cpu_bind": ValueForm(
        r"((verbose|quiet),)?(none|cores|threads|sockets|ldoms|rank|rank_ldom|map_cpu:[\dA-Fa-fx,*]+|"
        r"mask_cpu:[\dA-Fa-fx,*]+|map_ldom:[\dA-Fa-fx,*]+|mask_ldom:[\dA-Fa-fx,*]+)",
        "choices: none, cores, threads, sockets, ldoms, rank, map_cpu:LIST, mask_cpu:LIST",
    ),
    "file": _OUTPUT,
    "space": ValueForm(
        r"\d{1,15}[KMGT]?",
        "write a whole number and K, M, G or T, as in 20G; a number without a letter is in bytes",
    ),
    "folder": ValueForm(
        r"(/|\$(SLURM_SUBMIT_DIR|PBS_O_WORKDIR)$)[^\x00-\x1f\x7f]*", "write a full path inside the container"
    ),
}
"""Patterns for values of job fields. The attribute ``form`` of a field is the key of the field's pattern."""


def _form_of(field: JobField) -> ValueForm:
    """Return the pattern for the values of a field. If ``form`` is empty, the pattern matches the field's
    choices.
    """
    if isinstance(field.form, ValueForm):
        return field.form
    if field.form:
        return _FORMS[field.form]
    return ValueForm("|".join(field.choices), f"choices: {', '.join(field.choices)}")


FORMS: Mapping[str, ValueForm] = {
    field.name: _form_of(field) for field in FIELDS if field.form or field.name == "runtime"
}
"""The patterns for values of job fields, by field name."""

_FORM_NAMES: Mapping[str, str] = {field.name: field.form for field in FIELDS if isinstance(field.form, str)}
_COUNTS: Mapping[str, tuple[int, int]] = {field.name: field.bounds for field in FIELDS if field.bounds}
_MODULE = re.compile(r"(swap )?[A-Za-z0-9_][A-Za-z0-9_.+/:=@-]*( [A-Za-z0-9_][A-Za-z0-9_.+/:=@-]*)?")
_SBATCH = re.compile(r"(--[a-z][a-z-]*|-[A-Za-z])([= ].*)?")
_HAVE_FIELDS = {
    "job-name": "name", "J": "name", "nodes": "nodes", "N": "nodes",
    "ntasks": "nodes and the job field ranks_per_node", "n": "nodes and the job field ranks_per_node",
    "ntasks-per-node": "ranks_per_node", "cpus-per-task": "cpus_per_rank", "c": "cpus_per_rank",
    "time": "time", "t": "time", "output": "output", "o": "output", "error": "error",
    "e": "error", "array": "array", "a": "array", "signal": "warning", "open-mode": "output",
    "chdir": "directory", "D": "directory", "workdir": "directory", "wrap": "command",
}  # fmt: skip
"""sbatch options that a user cannot set with ``--sbatch``, and the job field to use instead.

Before Slurm 18.08, the name of ``--chdir`` was ``--workdir``.
"""


class ValueFault(NamedTuple):
    """A wrong value of a job field.

    ``message`` says what is wrong with the value, or what toolkit expects.
    """

    field: str
    value: object
    message: str


def objections(values: Mapping[str, object]) -> Iterator[ValueFault]:
    """Yield the faults in a job's values. An empty text is a fault only in some fields, such as ``name``."""
    for field, form in FORMS.items():
        value = values.get(field)
        # Use fullmatch, because `$` accepts a line break at the end.
        if (
            value is not None
            and not (value == "" and field not in _NEEDED)
            and (not isinstance(value, str) or not re.fullmatch(form.pattern, value, re.ASCII))
        ):
            yield ValueFault(field, value, form.rule)
        elif isinstance(value, str) and (what := numbers.wrong(_FORM_NAMES.get(field, ""), value)):
            yield ValueFault(field, value, what)
    for field, (least, most) in _COUNTS.items():
        value = values.get(field)
        if isinstance(value, int) and not least <= value <= most:
            yield ValueFault(
                field, value, f"expected at {f'least {least}' if value < least else f'most {most}'}"
            )
    for field, judge in _EACH.items():
        for item in _items(values.get(field)):
            if what := judge(item):
                yield ValueFault(field, item, what)


def option(field: str) -> str:
    """Return the command-line option that sets a field; if no option does, the field's name in capitals."""
    return next((row.option_name for row in FIELDS if row.name == field), field.upper())


def check_spec(spec: JobSpec) -> None:
    """Raise an error if Slurm or a shell would misread a value of the job.

    Raises:
        BadInput: if a value is wrong; the error names the option that sets the value.
    """
    values = {name: getattr(spec, name) for name in spec.__struct_fields__}
    for fault in objections(values):
        raise value_error(fault)
    check_command(spec.command)
    _check_elastic(spec)


def _check_elastic(spec: JobSpec) -> None:
    if spec.min_nodes and not spec.elastic:
        raise BadInput(f"--min-nodes {spec.min_nodes}: needs --elastic", fix="add `--elastic`")
    if spec.min_nodes > spec.nodes:
        raise BadInput(f"--min-nodes {spec.min_nodes}: must be at most --nodes {spec.nodes}")


def check_names(**names: str | None) -> None:
    """Raise an error if Slurm could misread a name; the keys of ``names`` are field names."""
    for field, value in names.items():
        if value is not None:
            for fault in objections({field: value}):
                raise value_error(fault)


def check_time(time: str) -> None:
    """Raise an error if sbatch would not accept the time limit."""
    for fault in objections({"time": time}):
        raise value_error(fault)


def check_command(command: Sequence[str]) -> None:
    """Raise an error if the job does not have a command."""
    if not command:
        raise BadInput(
            "the command is missing; name a trainer, or give a command after `--`",
            fix="for example: `toolkit launch mnist`, or `toolkit launch --image FILE.sif -- COMMAND`",
        )


def value_error(fault: ValueFault) -> BadInput:
    """Return the error for a wrong value; its message names the option that sets the value."""
    shown = fault.value if isinstance(fault.value, int) else repr(fault.value)
    return BadInput(f"{option(fault.field)} {shown}: {fault.message}")


def as_name(text: str) -> str:
    """Return a valid Slurm job name from the first word of a command."""
    return re.sub(r"[^A-Za-z0-9._+@=-]", "-", text).lstrip("._+@=-")[:64] or "job"


_NEEDED = {"name", "time", "partition", "account", "output"}
"""The names of fields in which an empty text is a fault."""


def _items(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (str(name) for name in value)
    elif isinstance(value, tuple | list):
        yield from (str(item) for item in value)


def _module(item: str) -> str:
    return "" if _MODULE.fullmatch(item) else "not a valid module name; write `NAME` or `swap OLD NEW`"


def _sbatch(item: str) -> str:
    if not item.isprintable() or not _SBATCH.fullmatch(item):
        return "write one option of sbatch on one line, as in --comment=x or -p gpu"
    try:
        sbatch.words(item)
    except ValueError:
        return "a closing quotation mark is missing"
    if not sbatch.is_one_option(item):
        return "sbatch reads this as more than one option; quote a value with spaces: --comment='x y'"
    name = sbatch.reserved_name(item, _HAVE_FIELDS)
    return f"use the job field {_HAVE_FIELDS[name]} instead" if name else ""


def bind_fault(item: str) -> str:
    """Return the fault of a bind ``SRC[:DST[:OPTS]]``, or an empty string."""
    item = item.removesuffix(IMAGE_BIND)
    if not item.isprintable() or "," in item:
        return "a bind cannot contain a comma, a line break or a control character"
    return "" if re.fullmatch(r"[^:]+(:[^:]+(:[a-z]+)?)?", item) else "write SRC[:DST[:ro]]"


def _variable(item: str) -> str:
    good = item.isidentifier() and item.isascii()
    return "" if good else "not a valid variable name; use letters, digits and _"


_EACH: Mapping[str, Callable[[str], str]] = {
    "modules": _module,
    "sbatch": _sbatch,
    "sweep": sweep_values.fault,
    "binds": bind_fault,
    "env": _variable,
}
