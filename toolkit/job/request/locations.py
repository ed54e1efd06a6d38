"""Where images and data are on this machine, and which folder on a cluster holds images, data and runs."""

import posixpath
import re
import shlex
from pathlib import Path

from toolkit.ambient import require_trusted
from toolkit.data import cache_dir, checkout, names
from toolkit.errors import BadInput, Missing
from toolkit.files import check_given, is_there
from toolkit.folders import at_home
from toolkit.image.files.reference import TRANSPORTS
from toolkit.near import near
from toolkit.run.command import Command, Runner
from toolkit.runtime import apptainer

ON_CLUSTER = "cluster:"
"""Stands before an image that is on the cluster and need not be here."""

_MARK = "toolkit-value:"
"""Stands before what a login shell is asked for; profiles print banners to standard output too."""

_RECIPES = "recipes"

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def find_image(given: str) -> Path:
    """Take a path as it is; look for the name of a recipe where ``make image`` puts its SIF.

    Raises:
        BadInput: if a file is named that is not there, or that no job starts from.
        Missing: if the recipe's image was not made yet.
    """
    if found := image_here(given):
        # Reading images takes its time to import, and is for commands that start one.
        from toolkit.image.startable import check_startable

        check_startable(found, "--image")
        return found
    if is_path(given):
        raise BadInput(f"--image {given}: no such file")
    known = names(_RECIPES, ".toml")
    name = shlex.quote(given)
    make = f"toolkit image build {name} && toolkit image sif {name} -o build/images/{name}.sif"
    raise Missing(
        f"there is no image {given} in {_listed(_image_folders())}"
        f"{near(given, known) if given not in known else ''}",
        fix=make if given in known else "give a SIF file, or a name that toolkit image list has",
    )


def image_here(given: str) -> Path | None:
    """Return the file that an image is on this machine; ``None`` where it is a path or a name of none.

    Raises:
        BadInput: for what no job starts from: a folder, a device, an image of a Docker engine or of a
            registry. Also for a file that only its name leads to, if another user may write it.
    """
    path = at_home(given)
    if path.is_file():
        check_given(path, label="--image")
        if not is_path(given):  # it may be meant as the name of a recipe
            require_trusted(path, f"name the file: --image {shlex.quote(f'./{path}')}")
        return path.resolve()
    if given.startswith(TRANSPORTS) or "://" in given:
        raise BadInput(
            f"--image {given}: a job starts from a SIF",
            fix=f"make one: {_sif_of(given)}",
        )
    if not is_path(given):
        for folder in _image_folders():
            candidate = folder / f"{given}.sif"
            if candidate.is_file():
                named = candidate if candidate.is_absolute() else f"./{candidate}"
                require_trusted(candidate, f"name the file: --image {shlex.quote(str(named))}")
                return candidate.resolve()
    # A folder may be called as a recipe is, and nobody means it then.
    if path.is_dir() and (is_path(given) or given not in names(_RECIPES, ".toml")):
        raise BadInput(f"--image {given}: a folder; name a SIF file")
    if is_path(given) and is_there(path, label="--image"):
        check_given(path, label="--image")  # a device, a FIFO, a link that leads nowhere
    return None


def _image_folders() -> tuple[Path, ...]:
    """Return the folders in which the name of a recipe is looked up: of this folder, then of the checkout."""
    here = (Path("build/images"), Path("images"), Path())
    made = checkout()
    return (*here, made / "build" / "images") if made and made != Path.cwd() else here


def _listed(folders: tuple[Path, ...]) -> str:
    *first, last = ("this folder" if folder == Path() else str(folder) for folder in folders)
    return f"{', '.join(first)} or {last}"


def _sif_of(given: str) -> str:
    if given.startswith("docker-daemon:"):
        return f"toolkit image sif {shlex.quote(given)}"
    return f"apptainer build my.sif {shlex.quote(given)}"


def named_image(given: str) -> str:
    """Return the file of an image that is called by the name of a recipe; any other text as it is.

    Raises:
        Missing: if the image of the recipe was not built.
    """
    if Path(given).exists() or given not in names(_RECIPES, ".toml"):
        return given
    return str(find_image(given))


def is_path(image: str) -> bool:
    """Tell whether an image is named by a path, and not by a recipe."""
    return "/" in image or image.endswith(".sif")


def data_folder(given: str | None, dataset: str) -> Path:
    """Return the folder of a data set on this machine.

    Raises:
        BadInput: if something else than a folder is named.
        Missing: if it was not fetched.
    """
    folder = at_home(given) if given else cache_dir() / "data" / dataset
    if given and is_there(folder, label="--data") and not folder.is_dir():
        raise BadInput(f"--data {folder}: not a folder", fix="name the folder that holds the data")
    if not folder.is_dir() and not dataset:
        raise BadInput(f"--data {folder}: there is no such folder")
    if not folder.is_dir():
        wanted = f" -o {shlex.quote(given)}" if given else ""
        raise Missing(f"the data set {dataset} is not in {folder}", fix=f"toolkit data get {dataset}{wanted}")
    return folder.resolve()


def program_file(given: str) -> Path:
    """Return the file of a trainer of one's own.

    Raises:
        BadInput: if it is not there, or no other machine would take its name.
    """
    path = at_home(given)
    check_given(path, fix="for a command of your own: -- COMMAND")
    return path.resolve()


def directory(runner: Runner, wanted: str | None, *, remote: bool, variables: bool = False) -> str:
    """Return the folder on the cluster that holds images, data and runs, absolute.

    ``variables`` says that ``$NAME`` in it is a variable there, as in a site profile.
    """
    if variables and wanted:
        wanted = expanded(runner, wanted)
    if not remote and wanted:
        return str(at_home(wanted).resolve())
    given = wanted or "toolkit"
    if given.startswith("/"):
        return given
    # WORK is what many centres, and our virtual cluster, call the large file system.
    folder = "HOME" if given.startswith("~") else "WORK"
    base = login_variable(runner, folder) or login_variable(runner, "HOME")
    if not base.startswith("/"):
        raise Missing(f"{runner.place} did not tell its home folder", fix="give --directory with a full path")
    return posixpath.normpath(posixpath.join(base, given.removeprefix("~").lstrip("/")))


def expanded(runner: Runner, path: str) -> str:
    """Return a path of a site profile with the values that its variables have there.

    Raises:
        Missing: if one has none.
    """
    return _VARIABLE.sub(lambda found: _value(runner, found[1] or found[2]), path)


def image_there(image: Path, digest: str, base: str) -> str:
    """Return where an image is copied to; its digest lets images of one name live side by side."""
    return posixpath.join(base, "images", f"{image.stem}-{digest[:12]}{image.suffix}")


def login_variable(runner: Runner, name: str) -> str:
    """Return a variable as a login shell there has it, whatever its profile prints."""
    line = f'printf "\n%s%s\n" "{_MARK}" "${{{name}:-}}"'
    text = runner.run(Command.of("sh", "-lc", line, timeout=30)).text
    return next((line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)), "")


def check_directory(given: str) -> None:
    """Refuse a folder that cannot be named or bound.

    Raises:
        BadInput: if it is another person's home, or holds a separator of ``--bind``.
    """
    if given.startswith("~") and given != "~" and not given.startswith("~/"):
        raise BadInput(
            f"--directory {given}: only one's own home can be named by ~", fix="give the full path"
        )
    apptainer.bind(given)


def _value(runner: Runner, name: str) -> str:
    if found := login_variable(runner, name):
        return found
    raise Missing(
        f"{runner.place} has no variable {name}, which the site profile names the folder by",
        fix=f"set {name} there, or give --directory with a full path",
    )
