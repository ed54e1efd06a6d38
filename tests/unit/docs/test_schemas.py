"""Test that the schemas accept the documents that toolkit reads and writes, and reject invalid documents."""

import json
import tomllib
from functools import cache

import msgspec
import pytest

from docs.generate.outside import ROOT
from docs.generate.schemas import documents, identity, pages, schema
from tests.unit.schemas import library
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.engine.predict import predict
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.prediction import Request
from toolkit.report.doctor.as_json import host_json, verdict_json

DOCUMENTS = documents()


@cache
def validator(name):
    return library().Draft202012Validator(schema(DOCUMENTS[name], name))


def check(name, value):
    validator(name).validate(value)


@every_row("name", DOCUMENTS)
def test_a_schema_is_one_and_names_its_document(name):
    made = validator(name).schema
    library().Draft202012Validator.check_schema(made)
    assert made["$defs"][DOCUMENTS[name].__name__]["properties"]["schema"] == {"const": name}


@every_row("path", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_recipes_fit(path):
    check("toolkit.recipe/2", tomllib.loads(path.read_text()))


@every_row("path", sorted((ROOT / "recipes").glob("*.lock.json")), ids=lambda p: p.stem)
def test_shipped_locks_fit(path):
    check("toolkit.lock/2", json.loads(path.read_bytes()))


@every_row("path", sorted((ROOT / "slurm/sites").glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_sites_fit(path):
    check("toolkit.site/1", tomllib.loads(path.read_text()))


@every_row(
    "wrong",
    [{"title": None}, {"want": None}, {"wnat": {}}, {"schema": "toolkit.recipe/1"}, {"packages": "pandas"}],
    ids=str,
)
def test_a_wrong_recipe_does_not_fit(wrong):
    right = {"schema": "toolkit.recipe/2", "title": "x", "want": {"tensorflow": "*"}}
    value = {name: item for name, item in {**right, **wrong}.items() if item is not None}
    check("toolkit.recipe/2", right)
    with pytest.raises(library().ValidationError):
        check("toolkit.recipe/2", value)


def test_a_job_fits_and_one_with_an_unknown_field_does_not():
    made = schema(JobFile, "")
    library().validate({"trainer": "mnist", "nodes": 2, "env": {"A": "b"}}, made)
    with pytest.raises(library().ValidationError):
        library().validate({"trainer": "mnist", "node": 2}, made)


def test_the_verdict_of_the_doctor_fits():
    host, image = HostFacts(place="here"), ImageFacts(path="my.sif", format="sif")
    verdict = predict(host, image, Request())
    for text in (verdict_json(host, image, verdict), host_json(host, verdict.findings)):
        value = json.loads(text)
        check("toolkit.doctor/1", value)
        with pytest.raises(library().ValidationError):
            check("toolkit.doctor/1", {**value, "chosen": "srun"})


def test_an_explanation_fits():
    value = msgspec.to_builtins(explain_output(Output("0: rank 0 of 1\n1: rank 0 of 1\nKeyError: 'x'\n")))
    check("toolkit.explain/2", json.loads(json.dumps(value)))
    with pytest.raises(library().ValidationError):
        check("toolkit.explain/2", {"schema": "toolkit.explain/2", "findings": [{}]})


def test_every_schema_is_a_file_that_the_index_links():
    made = pages()
    index = made["reference/schemas/index.md"]
    files = [path.rpartition("/")[2] for path in made if path.endswith(".json")]
    assert len(files) == len(DOCUMENTS) + 1
    assert all(f"]({name})" in index for name in files)


def test_what_holds_no_name_of_a_schema_is_no_document():
    assert identity(JobFile) == ""


@every_row(
    ("text", "right"),
    [
        ("https://a.b/c?d=e#f", True),
        ("pkg:pypi/x@1.0", True),
        ("a/b", True),
        ("", True),
        ("//[::1]:80/é", True),
        ("1:b", False),
        ("a b", False),
        ("%zz", False),
        ("a<b>", False),
        ("#a#b", False),
    ],
)
def test_a_reference_is_one_of_rfc_3987(text, right):
    made = {"type": "string", "format": "iri-reference"}
    checker = library().Draft7Validator.FORMAT_CHECKER
    assert library().Draft7Validator(made, format_checker=checker).is_valid(text) == right
    made["format"] = "iri"
    assert not library().Draft7Validator(made, format_checker=checker).is_valid("a/b")
