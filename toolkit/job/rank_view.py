"""Describe the command and the script of a rank, and the image folders that are hidden by mounts."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolkit.engine.traits import HOST_FOLDERS, bind_target
from toolkit.folders import at_home
from toolkit.image.software.contents import Contents, contents_of
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.rank import RankView
from toolkit.model.site import Site
from toolkit.program.command import CommandFacts, read_command
from toolkit.runtime.apptainer import IMAGE_BIND

TRAINER = ("python", "-m", "toolkit.trainers")
"""The first words of a trainer's command."""
_MOST_TEXT = 1 << 20
_SUFFIX = ".py"


def view_of_job(job: JobFile, site: Site | None) -> RankView:
    """Return the command of a job's ranks, and the image folders that are hidden from the ranks by mounts.

    A trainer's command starts with ``python``, so the ranks run the first Python on the image's PATH.
    """
    command = TRAINER if job.trainer else tuple(job.command or ())
    view = view_of_command(command, (*(site.container.binds if site else ()), *(job.binds or ())))
    return msgspec.structs.replace(view, env=str(at_home(job.env_image)) if job.env_image else "")


def view_of_command(command: Sequence[str], binds: Sequence[str] = ()) -> RankView:
    """Return the command, and the image folders that are hidden by mounts. ``binds`` are the mounts that the
    job and its site profile request. Each has the format ``SRC[:DST[:OPTS]]``.
    """
    targets = [bind_target(bind) for bind in binds if not bind.endswith(IMAGE_BIND)]
    known = [target for target in targets if target.startswith("/") and target != "/" and "$" not in target]
    return RankView(
        command=tuple(command), script=_script(command), hidden=tuple(dict.fromkeys((*HOST_FOLDERS, *known)))
    )


def read_command_here(command: Sequence[str]) -> CommandFacts:
    """Return the facts about the program that a command starts, from files in the current folder."""
    return read_command(command, Path.cwd())


def inspect_contents(image: str | Path, view: RankView, tell: Tell) -> tuple[ImageFacts, Contents | None]:
    """Return the facts about an image, as seen by a rank with the command and the mounts in ``view``. Also
    return the commands and modules in the image.

    If ``view`` has no command, the second value is ``None``, because toolkit then checks no program.
    """
    from toolkit.image.inspect import open_image  # This import is slow.

    with open_image(image, tell=tell, view=view) as (tree, facts):
        return facts, contents_of(tree, facts) if view.command else None


def inspect_view(image: str | Path, view: RankView, tell: Tell) -> ImageFacts:
    """Return the facts about an image, as seen by a rank with the command and the mounts in ``view``."""
    from toolkit.image.inspect import inspect  # This import is slow.

    return inspect(image, tell=tell, view=view)


def _script(command: Sequence[str]) -> str | None:
    """Return the text of the first Python script on this machine that the command names, or ``None``."""
    for word in command:
        path = Path(word)
        if word.endswith(_SUFFIX) and path.is_file() and path.stat().st_size <= _MOST_TEXT:
            return path.read_text(encoding="utf-8", errors="replace")
    return None
