"""Read ``forms.toml``, which describes the scaling evidence that computing centres demand."""

from functools import cache

import msgspec

from toolkit.errors import BadInput
from toolkit.knowledge.reading import Row, read


class Form(Row, frozen=True, kw_only=True):
    """The scaling evidence that one computing centre demands before it grants core hours or access to large
    partitions.
    """

    name: str
    title: str
    sizes: int
    """The study must measure times on at least this many different numbers of nodes."""
    nodes: tuple[int, int] | None = None
    """The smallest and the largest number of nodes that the study may measure; ``None`` for no limits."""
    efficiency: float = 0.0
    """The minimum parallel efficiency on the largest number of nodes, from 0 to 1; 0 for no such demand."""
    doubling: float = 0.0
    """The minimum speed-up if the number of nodes doubles; 0 if the form has no such demand."""
    script: bool = False
    """Whether the form demands a job script."""
    gpu: bool = False
    """Whether the form demands the GPU utilisation."""
    text: tuple[str, ...] = ()
    """Descriptions of the texts that applicants must write themselves."""


class Forms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The contents of ``forms.toml``."""

    form: tuple[Form, ...]


@cache
def forms() -> dict[str, Form]:
    """Return the forms of all computing centres by name."""
    return {form.name: form for form in read("forms", Forms).form}


def form_of(name: str) -> Form:
    """Return the form of the computing centre with this name.

    Raises:
        BadInput: if no form has this name.
    """
    try:
        return forms()[name]
    except KeyError:
        raise BadInput(
            f"--for {name}: no such form", fix=f"give one of these forms: {', '.join(forms())}"
        ) from None
