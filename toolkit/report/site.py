"""Format site profiles as a TOML file, a page, a table or JSON."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.launch.sites.sitecheck import ProfileCheck, State
from toolkit.model.site import Partition, Site
from toolkit.report.lines import wrap_hanging, wrap_text
from toolkit.report.table import table
from toolkit.report.toml import toml

_HEAD = """\
# {title}: written by toolkit init. Every key is explained in `toolkit site show example --toml`.
# Correct each wrong value. `toolkit site check` lists the values that do not match the cluster.

"""


def profile(site: Site) -> str:
    """Return a site profile as TOML, without the fields that have their default values."""
    return _HEAD.format(title=site.title) + toml(_stated_fields(site))


def _stated_fields(value: msgspec.Struct) -> dict[str, Any]:
    """Return the required fields of a struct, and the optional fields that differ from their defaults."""
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(value):
        field_value = getattr(value, field.name)
        if not field.required and field_value == field.default:
            continue
        if isinstance(field_value, msgspec.Struct):
            fields[field.encode_name] = _stated_fields(field_value)
        elif isinstance(field_value, tuple) and field_value and isinstance(field_value[0], msgspec.Struct):
            fields[field.encode_name] = [_stated_fields(row) for row in field_value]
        else:
            fields[field.encode_name] = field_value
    return fields


def profile_table(sites: Mapping[str, Site], own_names: Collection[str], width: int | None = None) -> str:
    """Return a table of site profiles. ``own_names`` contains the names of the user's own profiles."""
    rows = [
        (
            name,
            site.architecture,
            site.scheduler,
            site.tested,
            f"{site.title}, {site.centre}".rstrip(", ") + (" (yours)" if name in own_names else ""),
        )
        for name, site in sites.items()
    ]
    return table(("name", "processor", "scheduler", "tested", "cluster"), rows, width)


def row(name: str, site: Site, *, own: bool) -> dict[str, Any]:
    """Return the entry of one site profile in the list of profiles, as JSON values."""
    return {
        "name": name,
        "title": site.title,
        "centre": site.centre,
        "architecture": site.architecture,
        "scheduler": site.scheduler,
        "launcher": site.launch.launcher,
        "tested": site.tested,
        "own": own,
    }


def as_json(name: str, site: Site) -> dict[str, Any]:
    """Return the JSON values of a profile: its name and its fields."""
    return {"name": name, **msgspec.to_builtins(site)}


def page(name: str, file: str, site: Site, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a page about a site profile. ``file`` is the path of the profile; ``width`` is in
    characters.
    """
    yield from wrap_hanging(f"{name}: ", site.title + (f", {site.centre}" if site.centre else ""), width)
    yield f"  {file}"
    yield ""
    for label, value in _facts(site):
        if value:
            yield from wrap_hanging(f"  {label:11}", value, width)
    if site.partitions:
        yield ""
        room = None if width is None else width - 2
        yield from (f"  {line}" for line in _partitions(site.partitions, room).splitlines())
    if site.notes.strip():
        yield ""
        yield from _notes(site.notes.strip(), width)
    if site.sources:
        yield ""
        yield from (line for source in site.sources for line in wrap_hanging("  source: ", source, width))


def _notes(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a profile's notes. If a line is wider than the page, wrap each paragraph to the
    page's width.
    """
    if width is None or max(map(len, text.splitlines())) + 2 <= width:
        yield from (f"  {line}".rstrip() for line in text.splitlines())
        return
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        yield from wrap_text(" ".join(paragraph.split()), 2, width)


def _facts(site: Site) -> Iterator[tuple[str, str]]:
    launch, usual = site.launch, site.defaults
    tested = {
        "run": "toolkit ran jobs on the cluster",
        "rendered": "toolkit wrote job scripts, but ran no job",
    }
    yield "tested", tested[site.tested]
    yield "retired", site.retired
    yield (
        "checked",
        f"the author compared the profile with its sources on {site.checked}; the profile is out of date "
        f"from {site.expires}"
        if site.checked
        else "",
    )
    yield "processor", site.architecture
    yield "scheduler", f"{site.scheduler}, ranks started by {launch.launcher}"
    yield "host", site.host
    yield "modules", " ".join((*(["purge,"] if site.purge else []), *site.modules))
    yield "container", " ".join((site.container.command, *(f"(module {m})" for m in site.container.modules)))
    yield "binds", " ".join(site.container.binds)
    yield "launch", " ".join(filter(None, (launch.mode, launch.mpi and f"--mpi={launch.mpi}", *launch.srun)))
    yield "GPUs", f"requested by {site.gpus.ask}" if any(part.gpus for part in site.partitions) else ""
    yield "network", ", ".join(filter(None, (site.fabric, site.network)))
    yield "directory", site.directory
    yield "shared", site.shared
    yield "scratch", site.scratch
    yield "variables", " ".join(f"{key}={value}" for key, value in site.env.items())
    yield "host vars", " ".join(site.keep)
    yield "silenced", ", ".join(f"{name} ({reason})" for name, reason in site.silence.items())
    fields = _stated_fields(usual)
    extra = fields.pop("sbatch", ())
    yield "defaults", " ".join((*(f"{key}={value}" for key, value in fields.items()), *extra))


def _partitions(parts: tuple[Partition, ...], width: int | None) -> str:
    titles = ("partition", "time", "nodes", "cores", "threads", "memory MB", "GPUs", "features")
    rows = [
        (
            part.name + ("*" if part.default else ""),
            part.max_time or "?",
            _most(part),
            *(_number_or_mark(number) for number in (part.cores, part.threads, part.memory_mb)),
            f"{part.gpus} {part.gpu}".strip() if part.gpus else "-" if part.gpus == 0 else "?",
            " ".join(part.features) or "-",
        )
        for part in parts
    ]
    return table(titles, rows, width)


def _most(part: Partition) -> str:
    if part.max_nodes and part.nodes:
        return f"{part.max_nodes} of {part.nodes}"
    return _number_or_mark(part.max_nodes or part.nodes)


def _number_or_mark(number: int | None) -> str:
    return "?" if number is None else str(number)


def check_lines(name: str, place: str, points: Sequence[ProfileCheck]) -> Iterator[str]:
    """Yield a line for each profile value that does not match the cluster or that toolkit cannot check. The
    last line is a summary of the check. ``place`` is the name of the host on which toolkit checked the
    profile.
    """
    for point in points:
        if point.state != "holds":
            yield f"{point.state:10} {point.field}: {point.text}"
    count = Counter(point.state for point in points)
    parts = [f"{count['holds']} of {len(points)} values match"]
    parts += [f"{count[state]} {word}" for state, word in _WORDS.items() if count[state]]
    yield f"{name} on {place}: {', '.join(parts)}"


_WORDS: dict[State, str] = {"differs": "different", "undecided": "undecided"}


def check_json(name: str, place: str, points: Sequence[ProfileCheck]) -> dict[str, Any]:
    """Return the result of checking a profile as JSON values, including the profile values that match the
    cluster.
    """
    return {
        "schema": "toolkit.site-check/1",
        "site": name,
        "place": place,
        "holds": all(point.state != "differs" for point in points),
        "points": [point._asdict() for point in points],
    }
