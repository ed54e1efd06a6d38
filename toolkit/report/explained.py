"""Format the explanation of a job's output: the line that reports the failure, and the cause, class and fix
of the failure.
"""

from collections.abc import Iterator

from toolkit.model.finding import ADVICE, ErrorCode, KnownFault, OutputExplanation, RootLine
from toolkit.report.doctor.findings import findings
from toolkit.report.lines import Style, leave_unstyled, wrap_text

_LONGEST = 1000
"""Maximum number of characters that the page shows of one line of output."""

_EVIDENCE = 300
"""Maximum number of characters that the page shows of an output line that is the evidence for a cause."""

_MOST_POSSIBLE = 2


def explanation_lines(
    output_explanation: OutputExplanation, style: Style = leave_unstyled, width: int = 100
) -> Iterator[str]:
    """Yield the lines of the explanation of a job's output.

    In the explanation, the "root line" is the first output line that reports the failure. Without a failure,
    yield only the findings.
    """
    if output_explanation.root is None or output_explanation.fault is None:
        yield from findings(output_explanation.findings, style, width)
        return
    root, fault = output_explanation.root, output_explanation.fault
    if first := first_failed(root):
        yield from wrap_text(first, 0, width)
    yield style("Root line", "bold")
    yield from root_lines(root, width)
    for code in output_explanation.codes:
        yield from wrap_text(code_words(code), 4, width, outdent=2)
    yield ""
    causes = [
        known for known in output_explanation.findings if known.role == "cause" and known.severity != "info"
    ]
    if causes:
        for known in causes:
            yield from _known_lines(known, root, style, width)
        yield from wrap_text(f"Class: {fault.title} ({fault.id}). {fault.means}", 0, width)
    else:
        yield from wrap_text(f"{fault.title} ({fault.id})", 0, width)
        yield from wrap_text(fault.means, 2, width)
        yield from _steps(fault.fix, width)
    yield ""
    yield from wrap_text(ADVICE[output_explanation.retry or "user"], 0, width)
    yield from _other_lines(output_explanation, causes, style, width)


def root_lines(root: RootLine, width: int) -> Iterator[str]:
    """Yield the output line that reports the failure, with its line number. If the output contains a
    traceback, also yield the line of the user's code that failed.
    """
    where = f"{root.file}, line {root.number}: " if root.file else f"line {root.number}: "
    yield from wrap_text(shorten_line(root.text), 4, width, prefix=where if root.number else "", outdent=2)
    if root.frame:
        yield from wrap_text(root.frame, 6, width, prefix="raised at ", outdent=2)


def first_failed(root: RootLine) -> str:
    """Return a sentence that names the rank that failed first, or says which ranks waited until a timeout.

    The result is empty if the output reports neither a failed rank nor a timeout of waiting ranks.
    """
    node = f" on {root.node}" if root.node else ""
    if root.waited:
        subject = f"Rank {root.rank}{node}" if root.rank else "A rank"
        waited = f"{subject} waited for other ranks until a timeout."
        several = len(root.collectives) > 1
        if root.collectives:
            where = "different collectives" if several else "a collective"
            waited = f"Ranks waited in {where} until a timeout: {', '.join(root.collectives)}."
        return waited if several else f"{waited} Look for the rank that stopped or never joined."
    return f"Rank {root.rank}{node} failed first." if root.rank else ""


def code_words(code: ErrorCode) -> str:
    """Return an error code and its meaning, for example ``errno 28 (ENOSPC): The file system has …``."""
    name = code.name or code.text
    words = [
        code.family,
        *([str(code.number)] if code.number is not None else []),
        f"({name})" if name else "",
    ]
    return f"{' '.join(word for word in words if word)}: {code.means}"


def steps(fix: str) -> list[str]:
    """Split the text of a fix into its steps.

    If the text has several lines, each line is a step. In a text of one line, semicolons outside quotes and
    parentheses separate the steps.
    """
    if "\n" in fix:
        return fix.splitlines()
    parts, depth, quote = [""], 0, ""
    for letter in fix:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\x27\x22\x60" and not (letter == "\x27" and parts[-1][-1:].isalnum()):
            quote = letter
        depth += (letter in "([{") - (letter in ")]}")
        if letter == ";" and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    choices = (part.strip().removeprefix("or ").removeprefix("or, ") for part in parts)
    return [f"{choice[0].upper()}{choice[1:].removesuffix('.')}." for choice in choices if choice]


def shorten_line(text: str) -> str:
    """Return a line of output, truncated to :data:`_LONGEST` characters."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _known_lines(fault: KnownFault, root: RootLine, style: Style, width: int) -> Iterator[str]:
    for line in wrap_text(f"Cause: {fault.title} ({fault.id})", 0, width):
        yield line.replace("Cause", style("Cause", "bad"), 1) if line.startswith("Cause: ") else line
    lines = [line for line in fault.evidence if line.partition(": ")[2] != root.text.strip()]
    for line in lines[:1]:
        text = line if len(line) <= _EVIDENCE else f"{line[:_EVIDENCE]}…"
        yield from (style(part, "dim") for part in wrap_text(text, 4, width, prefix="· ", outdent=2))
    yield from _steps(steps(fault.fix), width)
    yield ""


def _steps(instructions: tuple[str, ...] | list[str], width: int) -> Iterator[str]:
    for number, step in enumerate(instructions, 1):
        yield from wrap_text(step, 5, width, prefix=f"{number}. ", outdent=3)


def _other_lines(
    output_explanation: OutputExplanation, causes: list[KnownFault], style: Style, width: int
) -> Iterator[str]:
    """Yield the lines at the end of the explanation: possible causes, then the first consequence of the
    failure, then the first output line in which a launcher reports that a rank exited.
    """
    possible = [
        known for known in output_explanation.findings if known.role == "possible" and known not in causes
    ]
    for known in possible[:_MOST_POSSIBLE]:
        yield from wrap_text(
            f"Possible cause: {known.title} ({known.id}); {shorten_line(known.evidence[0])}",
            2,
            width,
            outdent=2,
        )
    evidence = {line for known in possible[:_MOST_POSSIBLE] for line in known.evidence}
    for line in [line for line in output_explanation.consequences if line not in evidence][:1]:
        text = f"Consequence: {shorten_line(line)}"
        yield from (style(part, "dim") for part in wrap_text(text, 2, width, outdent=2))
    for line in output_explanation.ended[:1]:
        yield from (
            style(part, "dim") for part in wrap_text(f"Exit: {shorten_line(line)}", 2, width, outdent=2)
        )
