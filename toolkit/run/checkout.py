"""The git commit of the checkout from which toolkit runs."""

from toolkit.data import package
from toolkit.errors import Missing
from toolkit.run.command import Command
from toolkit.run.local import LocalRunner

_SECONDS = 10.0


def commit() -> str:
    """Return the commit of toolkit's checkout, with ``+changes`` if tracked files are modified.

    Return an empty string if toolkit does not run from a git checkout.
    """
    git = ("git", "-C", str(package().parent))
    try:
        known = LocalRunner().run(
            Command.of(*git, "ls-files", "--error-unmatch", "toolkit/__init__.py", timeout=_SECONDS)
        )
        head = LocalRunner().run(Command.of(*git, "rev-parse", "HEAD", timeout=_SECONDS))
        changed = LocalRunner().run(
            Command.of(*git, "status", "--porcelain", "--untracked-files=no", timeout=_SECONDS)
        )
    except Missing:
        return ""
    # If toolkit is installed below another project's checkout, git finds that checkout. The checkout of
    # another project does not contain toolkit/__init__.py, so `git ls-files` fails.
    if not known.ok or not head.ok:
        return ""
    return head.text.strip() + ("+changes" if changed.stdout.strip() else "")
