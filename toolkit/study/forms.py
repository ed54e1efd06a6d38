"""``forms.toml``: the evidence of scaling that centres ask for."""

from functools import cache

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge.reading import Row, read


class Form(Row, frozen=True, kw_only=True):
    """The evidence that one centre wants before it grants large partitions or core hours."""

    name: str
    title: str
    sizes: int
    """How many different numbers of nodes have to be measured."""
    nodes: tuple[int, int] | None = None
    """The smallest and the largest number of nodes of a test."""
    efficiency: float = 0.0
    """The least parallel efficiency of the largest size, as a part of 1; 0 if the form names none."""
    doubling: float = 0.0
    """The least speed-up when the number of nodes doubles; 0 if the form names none."""
    script: bool = False
    """Whether the form wants a job script."""
    gpu: bool = False
    """Whether the form wants the GPU utilisation."""
    text: tuple[str, ...] = ()
    """What the applicant has to write."""


class Forms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``forms.toml``."""

    form: tuple[Form, ...]


@cache
def forms() -> dict[str, Form]:
    """Return all forms by their names."""
    return {form.name: form for form in read("forms", Forms).form}


def form_of(name: str) -> Form:
    """Return one form.

    Raises:
        BadInput: if no form has this name.
    """
    try:
        return forms()[name]
    except KeyError:
        raise BadInput(f"--for {name}: no such form", fix=f"forms: {', '.join(forms())}") from None
