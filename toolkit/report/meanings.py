"""Look up the meaning of a fact: the docstring of its field in the classes of :mod:`toolkit.model`."""

import ast
import inspect
from functools import cache

from toolkit.model import facts, mpifacts

_SIDES = {"host": "HostFacts", "image": "ImageFacts"}
_INNER = {"slurm": "SlurmFacts", "mpis": "HostMpi", "runtime": "ContainerRuntime", "mpi": "ImageMpi"}


def meaning(fact: str) -> str:
    """Return the meaning of a fact such as ``host.slurm.version`` on one line. Return an empty string if the
    fact's field has no docstring.
    """
    side, _, field = fact.partition(".")
    first, _, rest = field.partition(".")
    owner, name = (_INNER[first], rest) if rest else (_SIDES[side], first)
    return _field_texts().get((owner, name), "")


@cache
def _field_texts() -> dict[tuple[str, str], str]:
    """Return the docstring below each field of the fact classes. A key of the result consists of the class
    name and the field name.
    """
    texts: dict[tuple[str, str], str] = {}
    for node in (node for module in (facts, mpifacts) for node in ast.parse(inspect.getsource(module)).body):
        if not isinstance(node, ast.ClassDef):
            continue
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _text(text):
                texts[node.name, field.target.id] = _text(text)
    return texts


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).replace("``", "").split())
    return ""
