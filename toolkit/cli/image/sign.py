"""``toolkit image sign``: sign a SIF, a bundle, a lock or an environment with PGP."""

from pathlib import Path

import click

from toolkit.cli.frame.say import say, say_json
from toolkit.cli.options.outputs import json_option
from toolkit.errors import BadInput
from toolkit.files import check_given, open_given, read_given
from toolkit.image.envs.lockfile import is_env
from toolkit.image.locks.lock import MOST_LOCK, SUFFIX, decode_lock
from toolkit.image.transfer.bundle_format import SUMS
from toolkit.image.trust.attachments import full_object
from toolkit.image.trust.detached import sign_file, signature_file
from toolkit.image.trust.signing import SignedFile, sign
from toolkit.model.progress import Tell
from toolkit.report.progress import Progress


@click.command("sign")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--key",
    required=True,
    metavar="FINGERPRINT|EMAIL",
    help="Fingerprint or e-mail address of your signing key in gpg",
)
@click.option(
    "--provenance",
    type=click.Choice(["lock", "full"]),
    default="lock",
    show_default=True,
    help="full: also put SIF.provenance.json into the SIF; this file says who built the SIF, how and when",
)
@json_option()
@click.pass_context
def command(ctx: click.Context, file: Path, key: str, provenance: str, as_json: bool) -> None:
    """Sign FILE: a SIF, a bundle, a lock or an environment.

    toolkit signs with gpg, whose agent asks for the passphrase. The signature of a SIF becomes part of the
    SIF, and toolkit updates the SIF's checksum in FILE.sha256. `toolkit image verify` and `apptainer verify`
    check the signature.

    The signature of a bundle, a lock or an environment is FILE.asc. `toolkit image unbundle` checks the
    signature of a bundle. `toolkit image build` and `toolkit image render` check the signature of a lock.
    `toolkit launch --env-image` checks the signature of an environment.

    \b
    Examples:
      toolkit image sign my.sif --key me@example.org
      toolkit image sign toolkit.tar --key me@example.org
    """
    beside = _is_bundle(file) or _is_lock(file) or is_env(file)
    if beside and provenance == "full":
        raise BadInput(f"--provenance full: {file} is not a SIF file; leave out --provenance")
    with Progress(verbose=ctx.obj["verbose"], quiet=ctx.obj["quiet"]) as tell:
        made = sign_file(file, key) if beside else _signed_sif(file, key, provenance, tell)
    if as_json:
        say_json(made, indent=True)
        return
    place = signature_file(file) if beside else made.path
    say(f"{place}  signed by {made.user} ({made.fingerprint})  sha256:{made.sha256}")


def _signed_sif(file: Path, key: str, provenance: str, tell: Tell) -> SignedFile:
    extra = (full_object(file),) if provenance == "full" else ()
    return sign(file, key, tell, extra=extra)


def _is_bundle(file: Path) -> bool:
    """Return whether a file is a bundle: a tar whose first member is the list of hashes."""
    check_given(file)
    with open_given(file) as opened:
        return opened.read(100).rstrip(b"\0") == SUMS.encode()


def _is_lock(file: Path) -> bool:
    """Return whether a file has the name of a lock.

    Raises:
        BadInput: if the file has the name of a lock, but its content is not a lock.
    """
    if not file.name.endswith(SUFFIX):
        return False
    decode_lock(
        read_given(file, limit=MOST_LOCK), str(file), fix="lock the recipe again: `toolkit image lock RECIPE`"
    )
    return True
