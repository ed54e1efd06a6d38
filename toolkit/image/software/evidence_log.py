"""The evidence for the facts of an image, collected while they are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.image.software.packages import PackageVersion, Untold

_SURELY = {"digest"}
"""Reasons for absence that no file can change."""


@dataclass
class ImageEvidence:
    """``evidence`` has the known facts; the other fields have unknown facts with the reason."""

    evidence: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def reasons(self) -> dict[str, dict[str, str]]:
        """Return the fields of the facts that say why each fact is known or not."""
        return {"evidence": self.evidence, "absent": self.absent, "unknown": self.unknown}

    def take(self, name: str, found: PackageVersion | Untold | None, looked_for: str) -> str | None:
        """Record a fact's evidence, or why it is absent or unknown, and return its value."""
        if isinstance(found, Untold):
            self.unknown[name] = found.reason
            return None
        if found is None:
            self.absent[name] = looked_for
            return None
        self.evidence[name] = found.evidence
        return found.version

    def doubt(self, unread: Mapping[str, str]) -> None:
        """Mark absent facts as unknown if they may be in files that could not be read."""
        if not unread:
            return
        path, reason = next(iter(unread.items()))
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        for name in self.absent.keys() - _SURELY:
            self.unknown[name] = f"{self.absent.pop(name)}; but {path}{more} cannot be read: {reason}"

    def list(
        self, name: str, names: tuple[str, ...] | None, line: str, *, told: bool = True
    ) -> tuple[str, ...] | None:
        """Record where a list of names was read, or why it is empty or unknown, and return it."""
        book = self.evidence if names is not None else self.absent if told else self.unknown
        book[name] = line
        return names
