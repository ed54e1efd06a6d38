"""``toolkit image verify``: check the signature, checksum and contents of a SIF."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.errors import CheckFailed, Missing
from toolkit.files import read_given
from toolkit.image.locks.lock import MOST_LOCK, decode_lock
from toolkit.image.trust.judgement import NO_SIGNATURE
from toolkit.image.trust.verify import verify
from toolkit.model.lock import Lock
from toolkit.model.verified import Check
from toolkit.report.progress import Progress
from toolkit.report.verified import lines

_FILE = click.Path(path_type=Path)


@click.command("verify")
@click.argument("sif", type=_FILE)
@click.option("--keyring", type=_FILE, help="File of trusted public keys  [default: your gpg keyring]")
@click.option(
    "--lock", "lock_file", type=_FILE, help="Lock file to compare SIF with  [default: the lock in SIF]"
)
@click.option(
    "--unsigned",
    is_flag=True,
    help="Accept a missing signature, or a signature by an unknown key",
)
@json_option()
@click.pass_context
def command(
    ctx: click.Context, sif: Path, keyring: Path | None, lock_file: Path | None, unsigned: bool, as_json: bool
) -> None:
    """Check the checksum and signatures of SIF, and compare the contents of SIF with its lock.

    The command does not start SIF.

    The command exits with status 1 if a check fails, and with 2 if SIF is not a readable SIF file. The status
    is 3 if the only failure is that gpg does not have the signer's public key.

    \b
    Examples:
      toolkit image verify my.sif
      toolkit image verify my.sif --keyring centre.asc --lock my.lock.json
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
            f"{sif}: the signer is unknown, because gpg does not have the key {found.unknown_keys[0]}",
            fix="get the key from the signer; then run `gpg --import FILE`, or give `--keyring FILE`",
        )
    if failed:
        more = f"; also failed: {', '.join(check.name for check in failed[1:])}" if failed[1:] else ""
        raise CheckFailed(f"{sif}: {failed[0].told}{more}", fix=_fix(failed))


def _fix(failed_checks: list[Check]) -> str:
    if [check.told for check in failed_checks] == [NO_SIGNATURE]:
        return "sign your own SIF with `toolkit image sign`; `--unsigned` accepts a SIF without signature"
    return "do not run this SIF; copy the SIF again from its source"


def _lock(file: Path) -> Lock:
    content = read_given(file, limit=MOST_LOCK, label="--lock")
    return decode_lock(content, f"--lock {file}", fix="lock the recipe again: `toolkit image lock RECIPE`")
