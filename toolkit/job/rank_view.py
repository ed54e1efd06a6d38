"""Find the image as a rank of a job sees it: the program of its command, and files under mounts."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolkit.engine.traits import HOST_FOLDERS, bind_target
from toolkit.folders import at_home
from toolkit.model.facts import ImageFacts
from toolkit.model.jobfile import JobFile
from toolkit.model.progress import Tell
from toolkit.model.rank import RankView
from toolkit.model.site import Site
from toolkit.program.command import CommandFacts, read_command
from toolkit.runtime.apptainer import IMAGE_BIND

TRAINER = ("python", "-m", "toolkit.trainers")
"""How the command of a trainer begins."""
_MOST_TEXT = 1 << 20
_SUFFIX = ".py"


def view_of_job(job: JobFile, site: Site | None) -> RankView:
    """Return the view of a job's ranks; a trainer runs in the Python that is first on the image's PATH."""
    command = TRAINER if job.trainer else tuple(job.command or ())
    seen = view_of_command(command, (*(site.container.binds if site else ()), *(job.binds or ())))
    return msgspec.structs.replace(seen, env=str(at_home(job.env_image)) if job.env_image else "")


def view_of_command(command: Sequence[str], binds: Sequence[str] = ()) -> RankView:
    """Return the view of ranks that run ``command``, with ``binds`` as ``SRC[:DST[:OPTS]]``."""
    targets = [bind_target(bind) for bind in binds if not bind.endswith(IMAGE_BIND)]
    known = [target for target in targets if target.startswith("/") and target != "/" and "$" not in target]
    return RankView(
        command=tuple(command), script=_script(command), hidden=tuple(dict.fromkeys((*HOST_FOLDERS, *known)))
    )


def read_command_here(command: Sequence[str]) -> CommandFacts:
    """Return the facts about a command's program, from the files of the current folder."""
    return read_command(command, Path.cwd())


def inspect_view(image: str | Path, view: RankView, tell: Tell) -> ImageFacts:
    """Return the facts of an image as the ranks of a job see it."""
    from toolkit.image.inspect import inspect  # this import takes long

    return inspect(image, tell=tell, view=view)


def _script(command: Sequence[str]) -> str | None:
    """Return the text of the first Python script of this machine that a command names."""
    for word in command:
        path = Path(word)
        if word.endswith(_SUFFIX) and path.is_file() and path.stat().st_size <= _MOST_TEXT:
            return path.read_text(encoding="utf-8", errors="replace")
    return None
