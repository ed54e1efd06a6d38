"""What MkDocs calls while it builds the site: it adds the pages that are made from the code."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generate import outside, reference, released
from docs.generate.navigation import expanded

_TWICE = "rules.md"
"""Pages that repeat other pages are left out of the search."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages made from the code and from linked files, and complete the navigation."""
    made = reference.pages() | released.pages()
    for file in [file for file in files if file.src_uri in made]:
        files.remove(file)  # the committed page belongs to the last release
    texts = made | {file.src_uri: file.content_string for file in files.documentation_pages()}
    shown = {path for uri, text in texts.items() for path in outside.linked(text, uri)}
    made |= {outside.place(path): outside.page_of(path) for path in sorted(shown)}
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    config.nav = expanded(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links to files of the repository to their pages."""
    if page.file.src_uri == _TWICE:
        page.meta["search"] = {"exclude": True}
    return outside.relinked(markdown, page.file.src_uri)
