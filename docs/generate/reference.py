"""All pages of the reference that are made from the code."""

from docs.generate import commands, files, findings, schemas, supported


def pages() -> dict[str, str]:
    """Return the text of every page and file, by its place in the site."""
    return commands.pages() | findings.pages() | files.pages() | schemas.pages() | supported.pages()
