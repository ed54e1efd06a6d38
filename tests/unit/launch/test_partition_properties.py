"""Test all requests on all shipped sites: the job fits its partition, or the error names the fitting
partitions.
"""

import itertools
import re
import tomllib
from collections.abc import Iterator

from tests.unit.tables import every_row
from tests.unit.thorough import share
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.knowledge import sites
from toolkit.launch.request.complete import complete_job
from toolkit.launch.request.layers import DEFAULTS, OPTION, JobLayer, merge, of_site
from toolkit.model.jobfile import JobFile

FILES = {file.stem: file for file in sorted((shipped_folder("slurm") / "sites").glob("*.toml"))}

SIZES = (None, 0, 1, 2, 4, 8)
"""The requested GPUs per node."""

SHAPES = tuple(itertools.product((None, 2, 5000), (None, 4, 64), (None, 1, 33)))
"""The requested nodes, ranks per node and cores per rank."""

REST = (
    {},
    {"time": "30-00:00:00"},
    {"time": "00:20:00", "memory": "1T"},
    {"memory": "200G"},
    {"memory_per_cpu": "4G"},
    {"gpu": "a100"},
)

MEBIBYTES = {"80G": 81920, "86000": 86000, "90000M": 90000, "200G": 204800, "1T": 1048576}
ENDLESS = "UNLIMITED"


def minutes(time: str) -> int:
    days, _, clock = time.rpartition("-")
    hours, minutes, _ = (int(part) for part in clock.split(":"))
    return (int(days or 0) * 24 + hours) * 60 + minutes


def requests(profile: dict) -> Iterator[dict]:
    partitions = (None, *(part["name"] for part in profile.get("partitions", ())))
    for partition, gpus, (nodes, ranks, cores), rest in itertools.product(partitions, SIZES, SHAPES, REST):
        said = {
            "partition": partition,
            "gpus_per_node": gpus,
            "nodes": nodes,
            "ranks_per_node": ranks,
            "cpus_per_rank": cores,
            **rest,
        }
        yield {name: value for name, value in said.items() if value is not None}


def fits(part: dict, asked: dict, profile: dict) -> bool:
    """Return whether a partition can run the request, without a call of toolkit's own check.

    A limit that the profile does not name allows any value.
    """
    gpus, has = asked.get("gpus_per_node", 0), part.get("gpus")
    elsewhere = max((other.get("gpus", 0) for other in profile["partitions"]), default=0)
    if has is None and elsewhere:
        has = elsewhere
    time = minutes(asked.get("time") or profile.get("defaults", {}).get("time", "01:00:00"))
    limit = part.get("max_time", ENDLESS)
    ranks, cores = asked.get("ranks_per_node", 1), asked.get("cpus_per_rank", 1)
    memory = MEBIBYTES[asked["memory"]] if "memory" in asked else 0
    if "memory_per_cpu" in asked:
        memory = max(memory, 4096 * ranks * cores)
    return (
        (has is None or gpus <= has)
        and part.get("gpu", "a100") in {"a100", asked.get("gpu", part.get("gpu", "a100"))}
        and (limit == ENDLESS or time <= minutes(limit))
        and asked.get("nodes", 1) <= min(part.get("max_nodes", 99999), part.get("nodes", 99999))
        and ranks * cores <= part.get("cores", 99999)
        and memory <= part.get("memory_mb", 99999999)
    )


def check_job(job: JobFile, asked: dict, profile: dict) -> None:
    assert {name: getattr(job, name) for name in asked} == asked
    parts = {part["name"]: part for part in profile.get("partitions", ())}
    usual = profile.get("defaults", {}).get("partition")
    if not parts:
        assert job.partition == usual
        return
    assert job.partition is not None
    part = parts[job.partition]
    made = {name: value for name, value in job.given_values().items() if name in asked}
    made |= {"cpus_per_rank": job.cpus_per_rank} if job.cpus_per_rank else {}
    made |= {"memory": job.memory} if job.memory else {}
    assert fits(part, made, profile)
    if job.constraint and "features" in part:
        assert set(job.constraint.split("&")) <= set(part["features"])
    if "partition" not in asked:
        needs_gpus = asked.get("gpus_per_node", 0) > 0
        somewhere_known = any("gpus" in one for one in parts.values() if fits(one, asked, profile))
        if needs_gpus and somewhere_known:
            assert "gpus" in part
        elif fits(parts[usual], asked, profile):
            assert job.partition == usual


def check_refusal(error: BadInput, asked: dict, profile: dict) -> None:
    names = [part["name"] for part in profile["partitions"]]
    fitting = {part["name"] for part in profile["partitions"] if fits(part, asked, profile)}
    assert "\n" not in error.message + error.fix
    if error.fix == "request fewer resources":
        assert fitting == set()
        assert all(re.search(rf"[(;, ]{re.escape(name)}[:, ]", error.message) for name in names)
    else:
        assert asked["partition"] not in fitting
        assert fitting
        offered = re.fullmatch(r"give `--partition` ([^;]+)(; limits of .+ are unknown)?", error.fix)
        assert offered
        unknown = (offered[2] or "").removeprefix("; limits of ").removesuffix(" are unknown").split(", ")
        assert {*offered[1].split(" or "), *filter(None, unknown)} == fitting


@every_row("name", FILES)
def test_a_job_fits_its_partition_or_is_refused_with_those_that_fit(name):
    profile = tomllib.loads(FILES[name].read_text())
    site = sites.site(str(FILES[name]))
    below = [JobLayer("default", DEFAULTS), of_site(name, site)]
    # 11 has no common divisor with the table sizes, so the tested requests include each pair of values.
    asks = share(list(requests(profile)), list(FILES).index(name), 11)
    for asked in asks:
        option = JobLayer(OPTION, JobFile(**asked, site=name, command=("true",)))
        try:
            job = complete_job(merge([*below, option]), site).job
        except BadInput as error:
            check_refusal(error, asked, profile)
        else:
            check_job(job, asked, profile)
    assert len(asks) >= len(SIZES) * len(SHAPES) * len(REST) // 11
