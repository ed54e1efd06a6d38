"""Import jsonschema without the package rfc3987, because compiling its grammars takes half of the import
time.
"""

import re
import sys
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

_LETTERS = r"A-Za-z0-9._~\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U000efffd-"
_CHARACTER = rf"(?:[{_LETTERS}!$&'()*+,;=:@]|%[0-9A-Fa-f]{{2}})"
_REFERENCE = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):|(?![^/?#]*:))"
    rf"(?://(?:{_CHARACTER}|[\[\]])*(?=[/?#]|\Z))?(?:{_CHARACTER}|/)*"
    rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
)
"""Matches a URI or IRI reference of RFC 3987. Without a scheme, the first part has no colon."""


def _parse(text: str, rule: str) -> bool:
    """Replace ``rfc3987.parse``: raise ``ValueError`` for an invalid reference."""
    found = _REFERENCE.fullmatch(text)
    if found is None or (rule in {"IRI", "URI"} and found["scheme"] is None):
        raise ValueError(text)
    return True


@cache
def library() -> ModuleType:
    """Return the module jsonschema, whose import is slow and which only a few tests need."""
    with patch.dict(sys.modules, {"rfc3987": SimpleNamespace(parse=_parse)}):  # type: ignore[dict-item]
        import jsonschema
    return jsonschema


def bom_faults(content: bytes) -> object:
    """Return the first fault of a bill of materials by CycloneDX's strict schema; None if it has no fault."""
    return _strict().validate_str(content.decode())


@cache
def _strict() -> Any:
    library()
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6)
