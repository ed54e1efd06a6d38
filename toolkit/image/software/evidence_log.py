"""Record the evidence of each fact of an image."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.image.software.packages import PackageVersion, UnknownVersion

_SURELY = {"digest"}
"""The facts whose absence does not depend on files in the image. These facts stay absent, and do not become
unknown, if toolkit cannot read a file.
"""


@dataclass
class ImageEvidence:
    """A line of evidence for each known fact, and a reason for each fact that is absent or unknown."""

    evidence: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def reasons(self) -> dict[str, dict[str, str]]:
        """Return the evidence and the reasons as fields of :class:`ImageFacts`."""
        return {"evidence": self.evidence, "absent": self.absent, "unknown": self.unknown}

    def take(
        self, name: str, version: PackageVersion | UnknownVersion | None, absence_reason: str
    ) -> str | None:
        """Record the evidence of the fact ``name``, or why the fact is absent or unknown. Return the fact's
        value, or None. ``absence_reason`` says why a fact is absent: ``libucp.so.0: not in the image``.
        """
        if isinstance(version, UnknownVersion):
            self.unknown[name] = version.reason
            return None
        if version is None:
            self.absent[name] = absence_reason
            return None
        self.evidence[name] = version.evidence
        return version.version

    def doubt(self, unreadable_files: Mapping[str, str]) -> None:
        """Change absent facts to unknown if toolkit could not read ``unreadable_files`` (path → reason)."""
        if not unreadable_files:
            return
        path, reason = next(iter(unreadable_files.items()))
        more = f" and {len(unreadable_files) - 1} more" if len(unreadable_files) > 1 else ""
        for name in self.absent.keys() - _SURELY:
            self.unknown[name] = f"{self.absent.pop(name)}; but {path}{more} cannot be read: {reason}"

    def list(
        self, name: str, names: tuple[str, ...] | None, line: str, *, known: bool = True
    ) -> tuple[str, ...] | None:
        """Record ``line`` for the fact ``name``, whose value is the list ``names``, and return ``names``.

        If ``names`` is a list, ``line`` is its evidence. If ``names`` is None and ``known`` is true, ``line``
        is the reason why the fact is absent. If ``names`` is None and ``known`` is false, ``line`` is the
        reason why the fact is unknown.
        """
        book = self.evidence if names is not None else self.absent if known else self.unknown
        book[name] = line
        return names
