"""``toolkit image verify``: check a SIF before it is trusted."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.image.common import JSON
from toolkit.errors import CheckFailed, Missing
from toolkit.files import read_given
from toolkit.image.locks.lock import MOST_LOCK, decode_lock
from toolkit.image.trust.verify import UNSIGNED, verify
from toolkit.model.lock import Lock
from toolkit.model.verified import Check
from toolkit.report.progress import Progress
from toolkit.report.verified import lines

_FILE = click.Path(path_type=Path)
_MOST_LOCK = 32 << 20


@click.command("verify")
@click.argument("sif", type=_FILE)
@click.option("--keyring", type=_FILE, help="File of the public keys that are trusted, in place of your own")
@click.option("--lock", "lock_file", type=_FILE, help="Lock that it has to be built from")
@click.option(
    "--unsigned",
    is_flag=True,
    help="Accept a file without a signature, or with one by a key that is not here",
)
@JSON
@click.pass_context
def command(
    ctx: click.Context, sif: Path, keyring: Path | None, lock_file: Path | None, unsigned: bool, as_json: bool
) -> None:
    """Check checksum and signatures of SIF, and what is inside against its lock; nothing is started.

    It ends with status 1 if anything does not hold, with 2 if SIF cannot be read as one, with 3 if only the
    key to check a signature with is not there.

    \b
    Examples:
      toolkit image verify my.sif
      toolkit image verify my.sif --keyring centre.asc --lock recipes/tf2.15-cpu.lock.json
    """
    lock = _lock(lock_file) if lock_file else None
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        found = verify(sif, keyring=keyring, lock=lock, unsigned=unsigned, tell=tell)
    if as_json:
        say_json(found, indent=True)
    else:
        say(*lines(found))
    failed = [check for check in found.checks if check.outcome == "failed"]
    if failed and all(check.name == "signature" and found.unknown_keys for check in failed):
        raise Missing(
            f"{sif}: the key {found.unknown_keys[0]} is not here, so nobody can tell whose signature that is",
            fix="get it from whoever signed, then: gpg --import FILE, or --keyring FILE",
        )
    if failed:
        more = f"; also wrong: {', '.join(check.name for check in failed[1:])}" if failed[1:] else ""
        raise CheckFailed(f"{sif}: {failed[0].told}{more}", fix=_fix(failed))


def _fix(failed: list[Check]) -> str:
    if [check.told for check in failed] == [UNSIGNED]:
        return "toolkit image sign signs your own; --unsigned accepts one of which nobody says whose it is"
    return "do not run it; take it again from where it was made"


def _lock(file: Path) -> Lock:
    content = read_given(file, most=MOST_LOCK, label="--lock")
    return decode_lock(content, f"--lock {file}", fix="toolkit image lock RECIPE")
