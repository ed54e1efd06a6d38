"""Record the evidence for each fact about a host."""

from toolkit.probe.evidence import Section


class HostEvidence:
    """Three tables, whose keys are names of facts, such as ``slurm.version``. ``evidence`` has the evidence
    for known facts; ``absent`` and ``unknown`` say why facts are absent or unknown.
    """

    def __init__(self) -> None:
        self.evidence: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.unknown: dict[str, str] = {}

    def note(self, name: str, text: str) -> None:
        self.evidence[name] = text

    def lacks(self, name: str, section: Section, programs: str) -> None:
        """Record the fact ``name`` as absent if the query's program does not exist, otherwise as unknown.
        ``programs`` names the programs that the probe looked for, such as ``nvidia-container-cli``.
        """
        if section.missing:
            self.absent[name] = f"{programs}: not found on PATH"
        else:
            self.unread(name, section, programs)

    def unread(self, name: str, section: Section, source: str) -> None:
        """Record the fact ``name`` as unknown because the query for the fact failed. ``source`` is the file
        or command that the probe queried.
        """
        self.unknown[name] = f"{source}: {section.trouble or 'no usable answer'}"
