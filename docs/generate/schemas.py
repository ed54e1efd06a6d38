"""JSON schemas of the documents that ``toolkit`` reads and writes, made from the same structs."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, get_args

import msgspec
from msgspec import inspect as shapes

import toolkit
from docs.generate.fields import sentences, texts
from docs.generate.markdown import cell, table
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding, OutputExplanation
from toolkit.model.job import JobRecord
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Accelerator, Basis, Mode, Outcome, ProgramName, Starter

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INSIDE_IMAGES = "toolkit.trainers"


class PlanWords(msgspec.Struct, kw_only=True):
    """The parts of a launch command; ``srun`` has the options of srun, in modes that start ranks by srun."""

    srun: tuple[str, ...] = ()
    launcher: tuple[str, ...]
    inside: bool
    container: tuple[str, ...]
    env: dict[str, str]
    unset: tuple[str, ...]
    binds: tuple[str, ...]
    wrapper: tuple[str, ...]
    program: ProgramName
    starter: Starter


class PredictionOfMode(msgspec.Struct, kw_only=True):
    """The outcome of one launch mode."""

    mode: Mode
    outcome: Outcome
    because: str
    by_chance: tuple[Outcome, ...]
    accelerator: Accelerator
    basis: Basis
    beyond: tuple[str, ...]
    findings: tuple[str, ...]
    missing: tuple[str, ...]
    plan: PlanWords | None


class DoctorAnswer(msgspec.Struct, kw_only=True):
    """What ``toolkit doctor --json`` prints."""

    schema: str = "toolkit.doctor/1"
    image: ImageFacts | None
    host: HostFacts
    predictions: tuple[PredictionOfMode, ...]
    chosen: Mode | None
    findings: tuple[Finding, ...]


class ListedJob(JobRecord, frozen=True, kw_only=True):
    """A job's record in a list; ``reached`` says whether the cluster of the job answered this command."""

    reached: bool


class JobList(msgspec.Struct, kw_only=True):
    """What ``toolkit jobs list --json`` prints."""

    schema: str = "toolkit.jobs/1"
    jobs: tuple[ListedJob, ...]


def documents() -> dict[str, type[msgspec.Struct]]:
    """Return the struct of every document that has a struct, by the name of its schema, sorted."""
    structs: list[type[msgspec.Struct]] = [*_structs(), DoctorAnswer, OutputExplanation, JobList]
    return {
        name: struct
        for name, struct in sorted(((identity(s), s) for s in structs), key=itemgetter(0))
        if name
    }


def identity(struct: type[msgspec.Struct]) -> str:
    """Return the value that the field ``schema`` of a struct must have; empty if any value is allowed."""
    for field in msgspec.structs.fields(struct):
        if field.name == "schema":
            choices = get_args(field.type) or (field.default,)
            return next((c for c in choices if isinstance(c, str)), "")
    return ""


def _structs() -> Iterator[type[msgspec.Struct]]:
    """Yield every struct of the package except structs of the modules that run inside images."""
    for found in pkgutil.walk_packages(toolkit.__path__, "toolkit."):
        if not found.name.startswith((_INSIDE_IMAGES, "toolkit.__main__")):
            for value in vars(importlib.import_module(found.name)).values():
                if (
                    isinstance(value, type)
                    and issubclass(value, msgspec.Struct)
                    and value.__module__ == found.name
                ):
                    yield value


def schema(struct: type[msgspec.Struct], name: str) -> dict[str, Any]:
    """Return the JSON schema of a struct; if the document has a name, the field ``schema`` must contain
    it."""
    (root,), parts = msgspec.json.schema_components(
        [struct], schema_hook=_anything, ref_template="#/$defs/{name}"
    )
    for inner in set(_within(shapes.type_info(struct))):
        part = parts[inner.__name__]
        part["description"] = " ".join(sentences(inner))
        for field, text in texts(inner).items():
            part["properties"][field]["description"] = text
    if name:
        parts[struct.__name__]["properties"]["schema"] = {"const": name}
    return {"$schema": _DIALECT, "title": name or struct.__name__, **root, "$defs": parts}


def _anything(kind: type) -> dict[str, Any]:
    """Return the schema of a type that JSON does not have, such as Python's ``object``: it allows any
    value."""
    return {"description": f"any {kind.__name__}"}


def _within(shape: shapes.Type) -> Iterator[type[msgspec.Struct]]:
    """Yield the structs that a type contains: itself, fields, elements of lists, values of tables."""
    match shape:
        case shapes.StructType():
            yield shape.cls
            inner: tuple[shapes.Type, ...] = tuple(field.type for field in shape.fields)
        case shapes.UnionType():
            inner = shape.types
        case shapes.VarTupleType():
            inner = (shape.item_type,)
        case shapes.DictType():
            inner = (shape.value_type,)
        case _:
            inner = ()
    for part in inner:
        yield from _within(part)


def pages() -> dict[str, str]:
    """Return the schemas as files, and the page that lists them."""
    named: dict[str, type[msgspec.Struct]] = {**documents(), "": JobFile}
    rows = []
    made = {}
    for name, struct in named.items():
        file = f"{name.replace('/', '-') or 'job'}.schema.json"
        made[f"reference/schemas/{file}"] = json.dumps(schema(struct, name), indent=2) + "\n"
        rows.append(
            (f"`{name}`" if name else "a job in YAML", f"[{file}]({file})", cell(sentences(struct)[0]))
        )
    head = _HEAD.format(count=len(rows))
    listed = table(("document", "schema", "what it is"), rows)
    return {"reference/schemas/index.md": f"{head}\n\n{listed}\n", **made}


_HEAD = """\
# JSON schemas

Programs can check documents with these {count} schemas of JSON Schema 2020-12. The schemas come from the
Python classes with which `toolkit` reads and writes these documents. The field `schema` of a document names
its schema. A release may add fields, so schemas of output allow unknown fields. Schemas of files that you
write (recipe, site, job, fix) refuse unknown fields, as `toolkit` does. [JSON for programs](../../json.md)
describes the output of every command, including output without a schema on this page.

An editor with JSON Schema completes and checks a recipe, a site profile or a job while you write it."""
