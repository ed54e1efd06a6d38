"""jsonschema without the half of its import that compiles grammars of references."""

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
"""A reference of RFC 3987: what has no scheme has no colon in its first part."""


def _parse(text: str, rule: str) -> bool:
    """Check a reference, as the package rfc3987 does, which jsonschema prefers to the grammars."""
    found = _REFERENCE.fullmatch(text)
    if found is None or (rule in {"IRI", "URI"} and found["scheme"] is None):
        raise ValueError(text)
    return True


@cache
def library() -> ModuleType:
    """Return jsonschema, which imports slowly and which only a few tests need."""
    with patch.dict(sys.modules, {"rfc3987": SimpleNamespace(parse=_parse)}):  # type: ignore[dict-item]
        import jsonschema
    return jsonschema


def bom_faults(content: bytes) -> object:
    """Return the first fault of a bill of materials by the strict schema of CycloneDX, if it has one."""
    return _strict().validate_str(content.decode())


@cache
def _strict() -> Any:
    library()
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6)
