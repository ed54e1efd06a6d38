"""Test that the pages about JSON name every field of each document that toolkit prints."""

import json
import re

from docs.generate.files import pages
from docs.generate.outside import ROOT
from docs.generate.schemas import documents, schema
from tests.unit.tables import every_row

DOCS = ROOT / "docs"
DOCUMENTS = documents()
NAMES = {struct.__name__ for struct in DOCUMENTS.values()}
UNDESCRIBED = {
    "toolkit.dataset/1": "a file of toolkit; no command prints this document",
    "toolkit.env/1": "a lock that only toolkit env reads",
    "toolkit.fix/1": "docs/fix.md describes this file",
    "toolkit.layered/1": "a part of toolkit.adopted/1, whose section describes the fields",
    "toolkit.recipe/2": "docs/reference/files/recipe.md lists the fields",
    "toolkit.result/1": "docs/metrics.md describes this document",
    "toolkit.stack/1": "a file that only toolkit reads",
    **dict.fromkeys(("toolkit.study/1", "toolkit.point/1"), "docs/scaling.md describes the files of a study"),
}
"""Documents that have no section on a page about JSON, with the reason."""
ELSEWHERE = {
    "toolkit.job/1": ("reference/files/job.md", "json-doctor.md"),
    "toolkit.jobs/1": ("json-jobs.md", "reference/files/job.md", "json-doctor.md"),
    "toolkit.site/1": ("reference/files/site.md",),
}
"""Other pages that name fields of a document. The document's section on a page about JSON links to these
pages.
"""


def described(name):
    """Return the words in backticks from the sections about a document.

    If no heading names the document, use every section that mentions it.
    """
    text = "\n".join(path.read_text() for path in sorted(DOCS.glob("json-*.md")))
    sections = [part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE) if f"`{name}`" in part]
    headed = [part for part in sections if f"`{name}`" in part.partition("\n")[0]] or sections
    further = [pages().get(page) or (DOCS / page).read_text() for page in ELSEWHERE.get(name, ())]
    code = re.findall(r"`[^`\n]+(?:\n[^`\n]+)?`", "\n".join((*headed, *further)))
    return set(re.findall(r"\w+", " ".join(code)))


def fields(struct, parts):
    """Yield the fields of a document as STRUCT.FIELD; skip inner documents that have their own schema."""
    own = parts[struct]["properties"]
    yield from (f"{struct}.{field}" for field in own)
    for inner in set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(own))) - NAMES:
        yield from fields(inner, parts)


@every_row("name", sorted(DOCUMENTS.keys() - UNDESCRIBED.keys()))
def test_the_pages_name_every_field_of_a_document(name):
    struct, words = DOCUMENTS[name], described(name) | {"schema"}
    named = fields(struct.__name__, schema(struct, name)["$defs"])
    assert not [field for field in named if field.rpartition(".")[2] not in words]


def test_a_field_of_another_document_would_be_noticed():
    assert "entry_script" in described("toolkit.image/1") - described("toolkit.host/1")
