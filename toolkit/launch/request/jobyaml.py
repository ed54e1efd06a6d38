"""Read a job file in YAML, with the line number of each value.

toolkit reads every scalar as text. The job field, not the YAML syntax, determines the type of the value.
Therefore ``10:00`` is a time and not the number 600, and an account may have the name ``no``.
"""

from dataclasses import dataclass, field
from typing import Any

import yaml

from toolkit.errors import BadInput

_NULL = {"", "~", "null"}
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Read:
    """The values of a job file.

    ``lines`` maps a field, such as ``nodes`` or ``env.NAME``, to its line number. Line numbers start at 1.
    """

    values: dict[str, Any]
    lines: dict[str, int]


def read(text: str, file: str) -> Read:
    """Return the fields in the YAML text of a job file; each error names the file and, if known, the line.

    Raises:
        BadInput: if the text is not YAML, does not consist of fields with values, or contains YAML syntax
            that job files do not support.
    """
    reader = _Reader(file)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadInput(f"{file}:{mark.line + 1 if mark else 1}: this is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:  # the text has a control character or invalid bytes
        raise BadInput(f"{file}: this is not YAML: {' '.join(str(error).split())[:120]}") from error
    if reader.root is None:
        return Read({}, {})
    if not isinstance(reader.root, dict):
        raise BadInput(f"{file}:1: expected fields with values, as in: nodes: 2")
    return Read(reader.root, reader.lines)


@dataclass
class _Open:
    """A mapping or list whose end the parser has not reached; ``key`` is the key of the next value."""

    values: dict[str, Any] | list[Any]
    path: str
    key: str | None = None


@dataclass
class _Reader:
    file: str
    root: Any = None
    documents: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        """Process the next event of the YAML parser."""
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput(
                f"{self.file}:{line}: YAML anchors (&) and aliases (*) are not supported; repeat the value"
            )
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise BadInput(
                    f"{self.file}:{line}: a second YAML document begins here; write only one document"
                )
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)

    def _begin(self, values: dict[str, Any] | list[Any], line: int) -> None:
        if len(self._open) >= _DEEPEST:
            raise BadInput(
                f"{self.file}:{line}: lists and mappings are nested more than {_DEEPEST} levels deep"
            )
        parent = self._open[-1] if self._open else None
        if parent and isinstance(parent.values, dict) and parent.key is None:
            raise BadInput(f"{self.file}:{line}: the name of a field must be a text, not a list or a mapping")
        self._open.append(_Open(values, self._store_value(values, line)))

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        parent = self._open[-1] if self._open else None
        if parent and isinstance(parent.values, dict) and parent.key is None:
            path = f"{parent.path}.{event.value}".lstrip(".")
            if event.value in parent.values:
                raise BadInput(f"{self.file}:{line}: {path}: appears twice")
            parent.key = event.value
            self.lines[path] = line
            return
        plain = event.style is None and event.value in _NULL
        self._store_value(None if plain else event.value, line)

    def _store_value(self, value: object, line: int) -> str:
        """Store a value at the parser's position, and return its path in the file, such as ``env.NAME``."""
        if not self._open:
            self.root = value
            return ""
        parent = self._open[-1]
        if isinstance(parent.values, list):
            path = f"{parent.path}[{len(parent.values)}]"
            parent.values.append(value)
        else:
            path = f"{parent.path}.{parent.key}".lstrip(".")
            parent.values[str(parent.key)] = value
            parent.key = None
            return path
        self.lines[path] = line
        return path
