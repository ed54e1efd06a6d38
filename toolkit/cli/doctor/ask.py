"""``toolkit doctor --ask``: predict from a few facts, such as the facts in a support ticket."""

import sys
from functools import partial
from pathlib import Path

import click
import msgspec

from toolkit.cli.frame.say import say, say_json
from toolkit.errors import BadInput
from toolkit.model.ticket import Ticket, TicketCluster, TicketImage

_QUESTIONS = (
    ("cluster.slurm", "Release of Slurm (sinfo --version)"),
    ("cluster.offers", "Plugins that srun --mpi=list prints, for example: pmi2 pmix pmix_v4"),
    ("cluster.runtime", "Container runtime and release, for example: apptainer 1.3.4"),
    ("cluster.mpirun", "MPI library of the cluster, with its release, for example: openmpi 4.1.5"),
    ("cluster.fabric", "Network: infiniband, slingshot, omni-path or ethernet"),
    (
        "image.mpi",
        "MPI library in the image, with its release, for example: openmpi 4.1.4; without MPI: none",
    ),
    ("job.nodes", "Number of nodes"),
    ("job.ranks_per_node", "Ranks on each node"),
)


def command(file: Path | None, *, as_json: bool) -> int:
    """Print the prediction, and return the exit status: 0 if a launch mode is predicted to work, else 1.

    Raises:
        BadInput: if the ticket in ``file`` is invalid. ``file`` is the value of ``--facts``.
        BadInput: if ``file`` is ``None``, and standard input is not a terminal.
    """
    from toolkit.cli.frame.styles import width_of_stdout
    from toolkit.engine.conditional import answers
    from toolkit.engine.ticket_facts import host_of, image_of, request_of
    from toolkit.report import conditional as shown

    ticket = _read(file) if file else _ask_ticket()
    found = answers(host_of(ticket.cluster), image_of(ticket.image), request_of(ticket))
    if as_json:
        say_json(shown.as_json(found))
    else:
        say(*shown.answer(found, width_of_stdout()))
    return 0 if found.chosen else 1


def _read(file: Path) -> Ticket:
    from toolkit.knowledge.strict import field_error, shape, tables, text_of

    text = text_of(file)
    try:
        return msgspec.convert(tables(text, str(file)), Ticket)
    except msgspec.ValidationError as error:
        raise field_error(shape(str(error), Ticket), text, str(file)) from error


def _ask_ticket() -> Ticket:
    if not sys.stdin.isatty():
        raise BadInput(
            "--ask: standard input is not a terminal",
            fix="write the answers into a file, then run: `toolkit doctor --ask --facts TICKET.toml`",
        )
    say("Leave unknown values empty.", err=True)
    given: dict[str, dict[str, object]] = {"cluster": {}, "image": {}, "job": {}}
    for key, text in _QUESTIONS:
        section, _, name = key.partition(".")
        said = click.prompt(
            text,
            default="",
            show_default=False,
            err=True,
            value_proc=partial(_value, key),
        )
        if said != "":
            given[section][name] = said
    return msgspec.convert(given, Ticket)


def _value(key: str, word: str) -> str | int | tuple[str, ...]:
    """Convert ``word``, the user's answer to one question, to the value of the ticket's field ``key``. If
    the function raises an error, click repeats the question.
    """
    section, _, name = key.partition(".")
    word = word.strip()
    if not word:
        return ""
    if section == "job":
        return int(click.IntRange(min=1)(word))
    value = tuple(word.split()) if name == "offers" else word
    try:
        _check(section, {name: value})
    except BadInput as error:
        raise click.UsageError(f"{error.message}{f'; {error.fix}' if error.fix else ''}") from error
    return value


def _check(section: str, values: dict[str, object]) -> None:
    """Raise ``BadInput`` if ``values`` contains a value that toolkit does not know, such as the name of an
    unknown MPI library.

    ``values`` are the values in the section ``cluster`` or ``image`` of the ticket.
    """
    from toolkit.engine.ticket_facts import host_of, image_of

    if section == "cluster":
        host_of(msgspec.convert(values, TicketCluster))
    else:
        image_of(msgspec.convert(values, TicketImage))
