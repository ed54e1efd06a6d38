"""Write the comparison page, from the results of one run and the template page.md."""

from pathlib import Path
from string import Template

from tests.benchmarks.image.conversions import PLAIN
from tests.benchmarks.image.result import Result
from tests.benchmarks.image.starts import BARE
from tests.benchmarks.image.timed import median
from tests.benchmarks.tables import table
from toolkit.image.sifs.packing import DEFAULT, PACKINGS

_TEMPLATE = Path(__file__).with_name("page.md")
_PLAIN = "plain `apptainer build`"


def page(found: Result) -> str:
    template = Template(_TEMPLATE.read_text("utf-8"))
    return template.substitute(
        when=_when(found), builds=_builds(found), conversions=_conversions(found), starts=_starts(found)
    )


def _when(found: Result) -> str:
    loads = [taken.load for rows in found.conversions.values() for taken in rows]
    text = (
        f"The times on this page were measured on {found.started[:10]} with {found.processors} logical CPUs; "
        f"the machine's load average was {min(loads):.1f} to {max(loads):.1f}.\n"
    )
    if max(loads) > found.processors + 1:
        text += "The machine had other work, so compare only times from this run with each other.\n"
    return text


def _conversions(found: Result) -> str:
    rows = [
        (
            "",
            "Time",
            "Speed, relative to plain",
            "Size of the SIF",
            "Size, relative to plain",
            "Are two conversions bit-identical?",
        )
    ]
    rows.append(("---",) * 6)
    rows.append((_PLAIN, *_took(found, PLAIN), "1", "no"))
    for packing in PACKINGS:
        name = f"`--for {packing.name}`{' (default)' if packing == DEFAULT else ''}"
        ratio = f"{found.ratios(packing.name)['sif_size_ratio']:.3f}"
        same = "yes" if found.same_bytes[packing.name] else "**no**"
        rows.append((name, *_took(found, packing.name), ratio, same))
    size = f"The image takes {found.image_bytes / 1e9:.2f} GB in the Docker engine."
    return f"## Conversion of `{found.image}`\n\n{size}\n\n{table(rows)}"


def _builds(found: Result) -> str:
    cold = "not measured" if found.builds.cold is None else f"{found.builds.cold:.0f} s"
    rows = [
        ("", "Time"),
        ("---",) * 2,
        ("empty cache: fetch, verify, compile, build, test", cold),
        ("after a change to a trainer, including the conversion to a SIF", f"{found.builds.edited:.1f} s"),
        ("without a change", f"{found.builds.warm:.1f} s"),
    ]
    return f"## Build: `toolkit image build`\n\n{table(rows)}"


def _took(found: Result, name: str) -> tuple[str, str, str]:
    seconds = f"{median(found.conversions[name]).wall:.1f} s"
    return seconds, f"{found.ratios(name)['conversion_ratio']:.1f} times", f"{found.sizes[name] / 1e6:.0f} MB"


def _starts(found: Result) -> str:
    bare = median(found.starts[BARE]["warm"])
    rows = [
        ("", "Cold start", "Warm start", "Warm start, relative to bare", "CPU time, relative to bare"),
        ("---",) * 5,
    ]
    rows.append(
        (
            "bare: the image in the Docker engine, without a SIF",
            "",
            f"{bare.wall:.2f} s",
            "1",
            f"1 ({bare.cpu:.2f} s)",
        )
    )
    for name in (PLAIN, *(packing.name for packing in PACKINGS)):
        ratios = found.ratios(name)
        times = [f"{median(found.starts[name][kind]).wall:.2f} s" for kind in ("cold", "warm")]
        shown = (f"{ratios['start_ratio']:.2f}", f"{ratios['start_ratio_cpu']:.2f}")
        rows.append((_PLAIN if name == PLAIN else f"`--for {name}`", *times, *shown))
    note = "In a cold start, the SIF is not in memory; in a warm start, it is."
    return f"## Start: `{found.program}`\n\n{note}\n\n{table(rows)}"
