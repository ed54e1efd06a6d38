"""Find images and data on this machine, and the cluster's folder for images, data and runs."""

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
from toolkit.near import suggest_near
from toolkit.run.command import Command, Runner
from toolkit.runtime import apptainer

ON_CLUSTER = "cluster:"
"""An option's value has this prefix, as in ``cluster:NAME``, if the image or data are on the cluster."""

_MARK = "toolkit-value:"
"""The mark that toolkit prints before a value in a login shell. Login files such as ``.bash_profile`` may
print other lines, which do not begin with this mark."""

_RECIPES = "recipes"

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def find_image(option: str) -> Path:
    """Return the image file that ``--image`` names: a path, or the SIF file of a recipe.

    Raises:
        BadInput: if the file does not exist, or is not an image that toolkit can launch.
        Missing: if toolkit finds no built image with the recipe's name.
    """
    if path := image_here(option):
        # Import `check_startable` here, because the import is slow, and only an image file needs it.
        from toolkit.image.startable import check_startable

        check_startable(path, "--image")
        return path
    if is_path(option):
        raise BadInput(f"--image {option}: no such file")
    known = names(_RECIPES, ".toml")
    name = shlex.quote(option)
    make = (
        f"make the image: `toolkit image build {name} && toolkit image sif {name} -o build/images/{name}.sif`"
    )
    raise Missing(
        f"--image {option}: not found in {_enumerate_folders(_image_folders())}"
        f"{suggest_near(option, known) if option not in known else ''}",
        fix=make if option in known else "give a SIF file, or a name that `toolkit image list` shows",
    )


def image_here(name: str) -> Path | None:
    """Return the file of an image on this machine, or ``None`` if the file does not exist.

    Raises:
        BadInput: if ``name`` is a folder, a device, or an image in a Docker engine or a registry. toolkit
            also raises this error if ``name`` is not a path (example: ``mnist``), and another user owns or
            can change the file that toolkit finds.
    """
    path = at_home(name)
    if path.is_file():
        check_given(path, label="--image")
        if not is_path(name):  # the user may have meant a recipe with this name
            require_trusted(path, f"name the file: --image {shlex.quote(f'./{path}')}")
        return path.resolve()
    if name.startswith(TRANSPORTS) or "://" in name:
        raise BadInput(
            f"--image {name}: not a file; toolkit launch needs a SIF file",
            fix=f"make a SIF: {_sif_of(name)}",
        )
    if not is_path(name):
        for folder in _image_folders():
            candidate = folder / f"{name}.sif"
            if candidate.is_file():
                named = candidate if candidate.is_absolute() else f"./{candidate}"
                require_trusted(candidate, f"name the file: --image {shlex.quote(str(named))}")
                return candidate.resolve()
    # If a folder has the name of a recipe, `--image NAME` means the recipe.
    if path.is_dir() and (is_path(name) or name not in names(_RECIPES, ".toml")):
        raise BadInput(f"--image {name}: this is a folder; toolkit launch needs a SIF file")
    if is_path(name) and is_there(path, label="--image"):
        check_given(path, label="--image")  # raises an error for a device, a FIFO or a broken link
    return None


def _image_folders() -> tuple[Path, ...]:
    """Return the folders in which toolkit looks for built images, in the order of the search."""
    folders = (Path("build/images"), Path("images"), Path())
    repository = checkout()
    return (*folders, repository / "build" / "images") if repository and repository != Path.cwd() else folders


def _enumerate_folders(folders: tuple[Path, ...]) -> str:
    *first, last = ("the current folder" if folder == Path() else str(folder) for folder in folders)
    return f"{', '.join(first)} or {last}"


def _sif_of(reference: str) -> str:
    if reference.startswith("docker-daemon:"):
        return f"`toolkit image sif {shlex.quote(reference)}`"
    return f"`apptainer build my.sif {shlex.quote(reference)}`"


def named_image(name: str) -> str:
    """Return the image file of the recipe ``name``. Return ``name`` unchanged if a file has this name, or if
    no recipe has this name.

    Raises:
        Missing: if the user has not built the recipe's image.
    """
    if Path(name).exists() or name not in names(_RECIPES, ".toml"):
        return name
    return str(find_image(name))


def is_path(image: str) -> bool:
    """Return whether ``image`` is a path and not the name of a recipe."""
    return "/" in image or image.endswith(".sif")


def data_folder(option: str | None, dataset: str) -> Path:
    """Return the folder of the data set ``dataset`` on this machine.

    ``option`` is the value of ``--data``, or ``None`` for the folder to which toolkit downloads data.

    Raises:
        BadInput: if the value of ``--data`` is not a folder.
        Missing: if the folder of the data set does not exist.
    """
    folder = at_home(option) if option else cache_dir() / "data" / dataset
    if option and is_there(folder, label="--data") and not folder.is_dir():
        raise BadInput(f"--data {folder}: not a folder", fix="give the folder with the data")
    if not folder.is_dir() and not dataset:
        raise BadInput(f"--data {folder}: the folder does not exist")
    if not folder.is_dir():
        wanted = f" -o {shlex.quote(option)}" if option else ""
        raise Missing(
            f"the data set {dataset} is not in {folder}",
            fix=f"download the data set: `toolkit data get {dataset}{wanted}`",
        )
    return folder.resolve()


def program_file(name: str) -> Path:
    """Return the absolute path of the Python file ``name``, which is the user's own trainer.

    Raises:
        BadInput: if the file does not exist, or toolkit cannot read it.
    """
    path = at_home(name)
    check_given(path, fix="check the path; if you meant a command, write the command after `--`")
    return path.resolve()


def directory(runner: Runner, option: str | None, *, remote: bool, variables: bool = False) -> str:
    """Return the absolute path of the folder for images, data and runs on the machine that runs the job.

    Args:
        runner: runs commands on this machine, or on the cluster's login node.
        option: the value of ``--directory``, or ``None`` for the default ``toolkit``. A relative path on a
            cluster is relative to ``$WORK`` or, if ``WORK`` is not set, to ``$HOME``.
        remote: whether ``runner`` runs commands on another machine.
        variables: whether to replace ``$NAME`` in the path with the variable's value on the cluster.

    Raises:
        Missing: if neither ``WORK`` nor ``HOME`` is set on the cluster.
    """
    if variables and option:
        option = expand_variables(runner, option)
    if not remote and option:
        return str(at_home(option).resolve())
    directory = option or "toolkit"
    if directory.startswith("/"):
        return directory
    # On many clusters, WORK is the path of the large file system.
    folder = "HOME" if directory.startswith("~") else "WORK"
    base = login_variable(runner, folder) or login_variable(runner, "HOME")
    if not base.startswith("/"):
        raise Missing(
            f"{runner.place}: HOME is not set on that machine", fix="give `--directory` with a full path"
        )
    return posixpath.normpath(posixpath.join(base, directory.removeprefix("~").lstrip("/")))


def expand_variables(runner: Runner, path: str) -> str:
    """Replace the variables in a path with their values on the cluster.

    Raises:
        Missing: if a variable is not set on the cluster.
    """
    return _VARIABLE.sub(lambda match: _value(runner, match[1] or match[2]), path)


def image_there(image: Path, digest: str, base: str) -> str:
    """Return the path of an image's copy on the cluster, below the folder ``base``.

    The copy's name contains the first 12 digits of the image's digest.
    """
    return posixpath.join(base, "images", f"{image.stem}-{digest[:12]}{image.suffix}")


def login_variable(runner: Runner, name: str) -> str:
    """Return the value of a variable in a login shell on the cluster, or an empty string if it is unset."""
    line = f'printf "\n%s%s\n" "{_MARK}" "${{{name}:-}}"'
    text = runner.run(Command.of("sh", "-lc", line, timeout=30)).text
    return next((line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)), "")


def check_directory(directory: str) -> None:
    """Check the form of ``--directory``, a folder that toolkit mounts into the container.

    Raises:
        BadInput: if the path starts with ``~NAME``, or contains a separator character of ``--bind``.
    """
    if directory.startswith("~") and directory != "~" and not directory.startswith("~/"):
        raise BadInput(
            f"--directory {directory}: ~NAME is not supported",
            fix="give the full path, or ~ for your own home",
        )
    apptainer.bind(directory)


def _value(runner: Runner, name: str) -> str:
    if value := login_variable(runner, name):
        return value
    raise Missing(
        f"{runner.place}: the variable {name}, which the site profile uses in a path, is not set",
        fix=f"set {name} on {runner.place}, or give `--directory` with a full path",
    )
