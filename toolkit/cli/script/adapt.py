"""``toolkit adapt``: change a training script so that it runs on several ranks."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from toolkit.cli.frame.files import write_whole
from toolkit.cli.frame.say import say, say_exact, say_json, say_text
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput

if TYPE_CHECKING:
    from toolkit.program.adapt.result import Way


@click.command("adapt")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the changed script to PATH")
@click.option(
    "--program",
    type=click.Choice(["horovod", "tf-config", "torch"]),
    help="What connects the ranks: Horovod, TensorFlow's multi-worker strategy, or PyTorch's DDP",
)
@click.option("--force", is_flag=True, help="Replace the file of --output if the file exists")
@json_option("Print JSON with the changes, the lines that adapt does not understand, and the diff")
def command(file: Path, output: Path | None, program: str | None, *, force: bool, as_json: bool) -> None:
    """Show, as a diff, the changes that a training script needs to run on several ranks.

    FILE is a Keras or PyTorch script for one process. With the changes, the script connects its ranks,
    divides the data among them and averages the gradients. The script multiplies the learning rate by the
    number of ranks, and only rank 0 writes files. adapt does not change code that it does not understand,
    and prints the lines that contain this code. adapt reads the script but does not run it.

    The diff goes to standard output. The lines that you must check, and the next command, go to standard
    error.

    Example: toolkit adapt train.py -o train_dist.py
    """
    import msgspec  # slow import, which --help does not need

    from toolkit.cli.frame.styles import style_of_stdout, width_of_stdout
    from toolkit.files import is_there
    from toolkit.job.adapt import adapt
    from toolkit.report.adapted import already_text, diff_text, notes_text

    if output is not None and not force and is_there(output, label="-o"):
        raise BadInput(
            f"-o {output}: the file exists", fix="give another name, or `--force` to replace the file"
        )
    result, content = adapt(file, cast("Way | None", program))
    if output is not None and not result.joins:
        write_whole(output, content)
        result = msgspec.structs.replace(result, output=str(output))
    if as_json:
        say_json(result, indent=True)
        return
    if result.joins:
        say(already_text(result))
        return
    if output is None:
        style = style_of_stdout()
        if style.__name__ == "unstyled":
            say_exact(result.diff)
        else:
            say_text(diff_text(result, style))
    else:
        say(f"Written to {output}.")
    made = file.with_name(f"{file.stem}_dist.py") if output is None else output
    write = shlex.join(["toolkit", "adapt", str(file), "-o", str(made)])
    launch = shlex.join(["toolkit", "launch", "--nodes", "2", str(made)])
    notes = notes_text(result, width_of_stdout(), write if output is None else launch)
    say(*notes.split("\n"), err=True)
