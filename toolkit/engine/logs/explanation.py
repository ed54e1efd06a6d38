"""Explain job output in three parts: the root line (the first line that reports the failure), the fault
class, and the known messages (lines that match a log signature of ``signatures.toml``).
"""

import re
from collections.abc import Iterable, Iterator

from toolkit.engine.logs.clues import Clue, clues, strip_label
from toolkit.engine.logs.codes import code_in, error_codes
from toolkit.engine.logs.endings import is_stopped
from toolkit.engine.logs.frames import FRAME, is_raised_by_user
from toolkit.engine.logs.joblines import Line, Output
from toolkit.engine.logs.leads.gpuwords import only_misses_gpu
from toolkit.engine.logs.line_class import classify, is_harmless
from toolkit.engine.logs.root import RootClue, find_root
from toolkit.engine.logs.signature_match import Recognised, SignatureMatch, recognise
from toolkit.engine.logs.topics import (
    GENERAL_CLASSES,
    class_of_exception,
    class_of_files,
    class_of_text,
    is_call_between_packages,
)
from toolkit.engine.logs.waiting import collectives, waited_for_ranks
from toolkit.knowledge.signatures import classes
from toolkit.model.finding import (
    FaultClass,
    Finding,
    KnownFault,
    KnownRole,
    OutputExplanation,
    Retry,
    RootLine,
)

_SENTENCE = re.compile(r"(?<=\.) ")
_SIGNALS = re.compile(r"(?:For s|S)ignals? \d+(?:(?:, | and )\d+)*")
"""A pattern for the start of a sentence such as ``Signal 6 means ...``. The text of a fault class may have
sentences that are true only for some signals.
"""

_UNREACHABLE = re.compile(
    r"^(?:\w+\.){0,8}(?:Connect(?:ion)?(?:Refused)?(?:Error|Timeout)|ReadTimeout|TimeoutError)\b"
)
"""A pattern for an exception whose type does not say which peer is unreachable; the message may name the
peer.
"""

_NEAR = 60
"""Maximum number of lines between a root line and a message that may explain the root line."""

_SAME_FAULT = 12
"""Maximum number of lines between a root line and a known message that reports the cause of the same fault.
Farther messages only show possible causes.
"""

_ROLES: tuple[KnownRole, ...] = ("cause", "possible", "consequence", "harmless")


def explain_output(output: Output) -> OutputExplanation:
    """Return the root line, the fault class, the known messages, and who or what can remove the fault
    (``retry``). If no line reports a failure, the result has only known messages.
    """
    recognised = recognise(output)
    told = _all_clues(output, recognised)
    root = find_root(output, told)
    known = tuple(_known_messages(recognised, root))
    if root is None:
        return OutputExplanation(findings=known, unread=recognised.unread)
    line, row = root.clue.line, classes()[_class_of_root(root, recognised, known)]
    codes = error_codes((line.text,)) or error_codes(
        text for text in root.exit_reports if not is_stopped(text)
    )
    signal = next((code.number for code in codes if code.family == "signal"), None)
    fix = (step for step in row.fix if _is_about(step, signal))
    return OutputExplanation(
        root=RootLine(
            number=line.number,
            text=(line.tag + line.text).strip(),
            rank=root.rank,
            node=root.node,
            frame=root.frame,
            waited=(waited := waited_for_ranks(root.clue) and root.rank in {"", line.task}),
            collectives=collectives(told) if waited else (),
        ),
        fault=FaultClass(
            id=row.id, title=row.title, means=_sentences_about(row.means, signal), fix=tuple(fix)
        ),
        codes=codes,
        retry=_cause_retry(recognised, known) or root.clue.retry or _code_retry(root, row.id) or row.retry,
        findings=known,
        ended=root.exit_reports,
        consequences=tuple(line.citation for line in root.consequences),
        unread=recognised.unread,
    )


def _sentences_about(text: str, signal: int | None) -> str:
    """Return a text without the sentences about signals other than ``signal``; the whole text if ``signal``
    is ``None``.
    """
    return " ".join(sentence for sentence in _SENTENCE.split(text) if _is_about(sentence, signal))


def _is_about(sentence: str, signal: int | None) -> bool:
    """Return whether a sentence is true for ``signal``. The result is also True if the sentence names no
    signal, or if ``signal`` is ``None`` (unknown).
    """
    named = _SIGNALS.match(sentence)
    return named is None or signal is None or str(signal) in re.findall(r"\d+", named[0])


def _class_of_root(root: RootClue, messages: Recognised, faults: tuple[KnownFault, ...]) -> str:
    """Return the fault class of the root line. If this class is general, such as ``unknown-error``, return a
    more specific class if possible: the class of a known cause in the root line, or the class that
    :func:`_class_of_subject` finds.
    """
    own = root.clue.class_ or "unknown-error"
    if own not in GENERAL_CLASSES:
        return own
    shown = {cause.id for cause in causes(faults)}
    matches = [m for m in messages.matches if m.finding().id in shown and _is_near(m, root)]
    named = [_class_by_name(match.signature.id) for match in matches if match.signature.id != own]
    if own in named:
        return own  # the known cause has the same general class
    known_class = next((class_ for class_ in named if class_ not in GENERAL_CLASSES), None)
    if known_class is None and own != "exit-status":
        return _class_of_subject(root) or own
    return known_class or own


def _class_of_subject(root: RootClue) -> str | None:
    """Return the fault class that follows from the root line's exception, from the files of its traceback, or
    from its words; ``None`` if no class follows. If the root line is not an exception, the errors in the next
    lines can also decide the class.
    """
    text = strip_label(root.clue.line.text)
    if FRAME.match(text):
        return None  # the file of the frame decided the class
    if root.clue.class_ != "python-exception":
        near = (one for one in (text, *root.next_errors) if one)
        return next((found for one in near if (found := class_of_text(one))), None)
    if is_call_between_packages(text, root.files):
        return "package"
    named = class_of_exception(text) or class_of_files(root.files)
    lost = _UNREACHABLE.match(text)
    if named is None and (lost or not root.files):
        named = class_of_text(text)
    if lost and is_raised_by_user(text, root.files, root.frame, root.code):
        return named if named == "network-or-dns" else None
    return named or ("network-or-dns" if lost else None)


def _cause_retry(messages: Recognised, faults: tuple[KnownFault, ...]) -> Retry | None:
    """Return who or what can remove the known cause, such as ``user`` or ``node``. The result is ``None`` if
    there is no known cause, or if the log signature of the cause does not say this.
    """
    said = {match.finding().id: match.signature.retry for match in messages.matches}
    return next((said.get(cause.id) for cause in causes(faults) if cause.severity == "error"), None)


def _code_retry(root: RootClue, class_: str) -> Retry | None:
    """If the kernel refused an operation of a container runtime, return who or what can remove the fault:
    ``node`` (another node) or ``site`` (the administrators); otherwise ``None``.
    """
    code = code_in(root.clue.line.text, "errno") if class_ == "container-runtime" else None
    return code.retry if code and code.retry in {"node", "site"} else None


def _all_clues(output: Output, messages: Recognised) -> list[Clue]:
    """Return the lines that may report a fault or that match a log signature of severity ``error``, in the
    order of the output. The result omits a line that may report a cause but matches a signature of severity
    ``info``.
    """
    found = {clue.position: clue for clue in clues(output, messages.suspects)}
    for match in messages.matches:
        old = found.get(match.position)
        if match.signature.severity == "info" and (old is None or old.role == "cause"):
            found.pop(match.position, None)
        elif match.signature.severity == "error" and not match.signature.general and _names_a_cause(old):
            found[match.position] = _clue_of(match, old)
    return [found[position] for position in sorted(found)]


def _names_a_cause(clue: Clue | None) -> bool:
    return clue is None or (clue.role == "cause" and clue.strength > 0)


def _clue_of(match: SignatureMatch, clue: Clue | None) -> Clue:
    line = match.lines[0]
    row = classify(strip_label(line.text))
    known = clue.class_ if clue else (row.class_ if row else "")
    class_ = known if known not in {"", "unknown-error"} else _class_by_name(match.signature.id)
    strength = 4 if is_harmless(strip_label(line.text)) else 5  # harmless: such as a retry message
    return Clue(match.position, line, class_, strength, "cause", clue.retry if clue else None)


def _class_by_name(signature: str) -> str:
    """Return the fault class for the id of a log signature. If the id starts with several prefixes of
    ``classes.toml``, the longest prefix decides; without such a prefix, the class is ``unknown-error``.

    toolkit uses this class if the rows of ``faultlines.toml`` give no class or only a general class.
    """
    prefixes = ((prefix, row.id) for row in classes().values() for prefix in row.signatures)
    named = ((len(prefix), class_) for prefix, class_ in prefixes if signature.startswith(prefix))
    return max(named, default=(0, "unknown-error"))[1]


def _known_messages(messages: Recognised, root: RootClue | None) -> Iterator[KnownFault]:
    """Yield the known messages, each with its role in the failure: causes first, then possible causes, then
    consequences.
    """
    lines = {match.finding(): match for match in messages.matches}
    told = [
        (_role(lines.get(finding), finding, root), finding)
        for finding in messages.findings()
        if root is not None or not _is_survived(lines.get(finding))
    ]
    shown = {finding for role, finding in told if role == "cause" and _shows_root(lines.get(finding), root)}
    if shown:
        told = [
            (_role_beside_root(role, finding in shown, lines.get(finding)), finding) for role, finding in told
        ]

    def order(pair: tuple[KnownRole, Finding]) -> tuple[int, bool, int]:
        # Within a role, the finding without a line in the output comes last. It says that each rank started
        # as a world of size 1, which is a consequence of another fault.
        match = lines.get(pair[1])
        far = abs(match.lines[0].number - root.clue.line.number) if match and root else 0
        return _ROLES.index(pair[0]), match is None, far

    for role, finding in sorted(told, key=order):
        yield KnownFault(
            id=finding.id,
            severity=finding.severity,
            title=finding.title,
            evidence=finding.evidence,
            fix=finding.fix,
            source=finding.source,
            role=role,
        )


def _is_survived(match: SignatureMatch | None) -> bool:
    """Return whether a message reports an error that the job survived. toolkit calls this function only for
    an output without a root line: the job survived every error in this output.
    """
    return match is not None and match.signature.severity == "error"


def _shows_root(match: SignatureMatch | None, root: RootClue | None) -> bool:
    """Return whether a match of a log signature contains the root line, and the signature has the severity
    ``error``.
    """
    return (
        match is not None
        and root is not None
        and match.signature.severity == "error"
        and _is_near(match, root)
    )


def _role_beside_root(role: KnownRole, is_in_root: bool, match: SignatureMatch | None) -> KnownRole:
    """Return ``possible`` if ``role`` is ``cause`` and the message ``match`` is outside the root line;
    otherwise return ``role``. ``is_in_root`` is true if ``match`` is in the root line.

    toolkit calls this function only if the root line contains a known message.
    """
    return "possible" if role == "cause" and match is not None and not is_in_root else role


def _role(match: SignatureMatch | None, finding: Finding, root: RootClue | None) -> KnownRole:
    """Return the role of a known message in this failure: cause, possible cause or consequence."""
    if match is None:
        return "cause"
    if finding.severity == "info" or match.signature.general:
        return "consequence"
    if root is None or (_is_near(match, root) and not _is_circumstance(match, root)):
        return "cause"
    row = classify(strip_label(match.lines[0].text))
    if row is not None and row.role == "consequence":
        return "consequence"
    if match.position > root.clue.position and only_misses_gpu(match.lines[0].text):
        return "consequence"
    same = _class_of(match) == root.clue.class_ and match.signature.severity == "error"
    own, line = root.clue.line, match.lines[0]
    near = abs(line.number - own.number) <= _NEAR
    if same and near and _continues(line, own):
        return "cause"
    return "possible" if near or match.position < root.clue.position else "consequence"


def _is_circumstance(match: SignatureMatch, root: RootClue) -> bool:
    """Return whether the root line is a frame of a traceback, and the message is only a warning about the
    path in this frame. Such a message does not report the cause.
    """
    return match.signature.severity != "error" and FRAME.match(strip_label(root.clue.line.text)) is not None


def _continues(line: Line, root: Line) -> bool:
    """Return whether a line is part of the message of the root line, or precedes this message.

    The line must be of the same rank. If it comes after the root line, it must also start with the same word,
    such as ``srun:``, because another program may have written the line.
    """
    if abs(line.number - root.number) > _SAME_FAULT or (root.task and line.task != root.task):
        return False
    return line.number < root.number or line.text.split()[:1] == root.text.split()[:1]


def _is_near(match: SignatureMatch, root: RootClue) -> bool:
    """Return whether a match of a log signature contains the root line, or a line that the root line
    repeats.
    """
    own = root.clue.line
    return any(
        line.number == own.number
        or (0 < line.number - own.number <= _SAME_FAULT and line.text.strip() in own.text)
        for line in match.lines
    )


def _class_of(match: SignatureMatch) -> str:
    row = classify(strip_label(match.lines[0].text))
    return row.class_ if row else _class_by_name(match.signature.id)


def causes(faults: Iterable[KnownFault]) -> list[KnownFault]:
    """Return the known messages that report the cause of the failure."""
    return [one for one in faults if one.role == "cause" and one.severity != "info"]


def as_findings(explanation: OutputExplanation) -> tuple[Finding, ...]:
    """Return the findings of an explanation. If no known message reports the cause, a finding about the fault
    class of the root line comes first.
    """
    if explanation.root is None or explanation.fault is None or causes(explanation.findings):
        return explanation.findings
    own = Finding(
        id=explanation.fault.id,
        severity="error",
        title=explanation.fault.title,
        evidence=(f"line {explanation.root.number}: {explanation.root.text}",),
        fix="\n".join(explanation.fault.fix),
        source="recipes/knowledge/classes.toml",
    )
    return (own, *explanation.findings)
