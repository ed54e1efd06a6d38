"""Generate facts that no real host or image has, with missing, extra, garbled or hostile fields."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.unit.engine.whole import HOST, IMAGE
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import MODES, Request

_VERSIONS = (
    "4.1.4",
    "5.0.7",
    "3.2.5",
    "6.0.0rc2",
    "2.31",
    "12.4.127",
    "535.161.08",
    "4.2.2-1+deb12u1",
    "1:7.0~rc1",
)
_NAMES = (
    *("openmpi", "mpich", "intelmpi", "pmix", "pmi1", "pmi2", "none", "pmix_v5", "apptainer", "singularity"),
    *("sif", "x86_64", "x86-64-v3", "mlx5_0", "hfi1_0", "slingshot", "NVIDIA A100-SXM4-40GB", "ch4:ucx"),
    *("ch3:nemesis", "libmpi.so.40", "libpmix.so.2", "/usr/bin/mpirun", "/tmp", "no", "yes", "hash", "munge"),
    *("mpi", "gloo", "OMPI_MCA_btl", "APPTAINER_CLEANENV", "LD_PRELOAD", "TMPDIR", "PMIX_MCA_gds", "UCX_TLS"),
)
_HOSTILE = (
    *("", " ", "0", "-1", "v", "1." * 400, "9" * 6000, "\u0663.\u0664", "1e999", "NaN", "../../etc/passwd"),
    *("a\nb\r\x1b[31m", "\x00", "\U0001f600", "{{ 7 * 7 }}", "$(reboot)", "'; --", "%s%n", "(((((", "[["),
    *("*" * 300, "1.2.3.4.5.6.7.8.9.10", ">=4,<5", "4.1.4 5.0.7", ":" * 40, "=", ","),
)

texts = st.one_of(
    st.sampled_from(_VERSIONS), st.sampled_from(_NAMES), st.sampled_from(_HOSTILE), st.text(max_size=20)
)


def of_type(kind: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    match type(kind).__name__:
        case "StrType":
            return texts
        case "IntType":
            return st.one_of(st.integers(-2, 2**40), st.sampled_from((-(2**63), 2**63)))
        case "BoolType":
            return st.booleans()
        case "NoneType":
            return st.none()
        case "AnyType" | "CustomType":
            return st.none() | st.booleans() | texts
        case "UnionType":
            return st.one_of(*(of_type(one, depth) for one in kind.types))
        case "VarTupleType":
            return st.lists(of_type(kind.item_type, depth + 1), max_size=3).map(tuple)
        case "DictType":
            return st.dictionaries(texts, of_type(kind.value_type, depth + 1), max_size=3)
        case "StructType":
            return struct(kind.cls, depth + 1)
    raise TypeError(kind)


def struct(cls: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    info = msgspec.inspect.type_info(cls)
    fields = {f.encode_name: of_type(f.type, depth) for f in info.fields if f.name not in _BOOKS}
    needed = {f.encode_name: fields[f.encode_name] for f in info.fields if f.required}
    chosen = {name: s for name, s in fields.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=chosen).map(lambda given: cls(**given))


_BOOKS = {"schema", "evidence", "absent", "unknown"}


def _dotted(cls: Any) -> list[str]:
    return [name for name in cls.__struct_fields__ if name not in _BOOKS] + (
        ["slurm.mpi_types", "slurm.settings", "runtime.settings", "runtime.setuid"]
        if cls is HostFacts
        else ["mpi.interfaces", "mpi.version", "mpi.launcher", "mpi.plugins"]
    )


def _with_books(cls: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for facts of which random names are marked absent or unknown, even if they have a
    value.
    """
    names = st.sampled_from(_dotted(cls)) | texts
    book = st.dictionaries(names, texts, max_size=8)
    whole = st.tuples(struct(cls), book, book, book)
    return whole.map(
        lambda drawn: msgspec.structs.replace(drawn[0], evidence=drawn[1], absent=drawn[2], unknown=drawn[3])
    )


def _changed(whole: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for good facts with a few replaced fields.

    With more replaced fields, rules would return at their first condition.
    """
    info = msgspec.inspect.type_info(type(whole))
    fields = {f.encode_name: of_type(f.type) for f in info.fields if f.name not in _BOOKS}
    names = st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=5, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen}).map(
            lambda given: msgspec.structs.replace(whole, **given)
        )
    )


hosts: st.SearchStrategy[HostFacts] = _with_books(HostFacts) | _changed(HOST)
images: st.SearchStrategy[ImageFacts] = _with_books(ImageFacts) | _changed(IMAGE)
requests: st.SearchStrategy[Request] = st.builds(
    Request,
    nodes=st.integers(1, 4),
    ranks_per_node=st.integers(1, 4),
    mode=st.none() | st.sampled_from(MODES),
    batch=st.booleans(),
    env=st.dictionaries(texts, texts, max_size=3),
)
