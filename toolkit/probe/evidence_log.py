"""Record the reason for each fact while the facts are read."""

from toolkit.probe.evidence import Section


class HostEvidence:
    """Lines of evidence, and the reasons for missing facts, by the dotted name of a fact."""

    def __init__(self) -> None:
        self.evidence: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.unknown: dict[str, str] = {}

    def note(self, name: str, said: str) -> None:
        self.evidence[name] = said

    def lacks(self, name: str, section: Section, looked_for: str) -> None:
        """Record why a fact is missing: it does not exist, or there was no answer."""
        if section.missing:
            self.absent[name] = f"{looked_for}: not found on PATH"
        else:
            self.unread(name, section, looked_for)

    def unread(self, name: str, section: Section, asked: str) -> None:
        """Record a fact as unknown, because a command that does not answer shows nothing about it."""
        self.unknown[name] = f"{asked}: {section.trouble or 'the answer was not understood'}"
