"""Test how toolkit finds and reads site profiles, and its one-line errors for wrong profiles."""

import itertools
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.knowledge import sites
from toolkit.knowledge.sitefields import objections
from toolkit.model.site import Container, Defaults, Launch, Partition, Site

LEAST = 'schema = "toolkit.site/1"\ntitle = "A"\n'
EXAMPLE = shipped_folder("slurm") / "sites" / "example.toml"


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "toolkit" / "sites"
    folder.mkdir(parents=True)
    return folder


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        sites.parse(text, "a.toml")
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_clusters_of_the_issue_are_there_and_say_what_was_run_and_from_where_they_are():
    wanted = {"virtual", "juwels", "juwels-booster", "jureca", "cte-power", "biohpc", "cori-knl", "piz-daint"}
    assert wanted | {"marconi", "davide", "polaris"} <= set(sites.names(historic=True))
    for name in sites.names(historic=True):
        found = sites.site(name)
        assert found.tested == ("run" if name == "virtual" else "rendered")
        assert found.notes.strip()
        assert found.sources
        assert found.launch.mode or "launch mode" in " ".join(found.notes.split())


def test_machines_that_are_special_are_described_so():
    assert sites.site("cte-power").architecture == sites.site("davide").architecture == "ppc64le"
    assert (sites.site("polaris").scheduler, sites.site("polaris").launch.launcher) == ("pbs", "pals")
    assert "Shifter" in sites.site("cori-knl").notes


def test_the_example_names_every_field_and_is_read_like_any_other():
    raw = tomllib.loads(EXAMPLE.read_text())
    site = sites.site("example")

    def named(value: dict, kind: type) -> None:
        missing = {field.encode_name for field in msgspec.structs.fields(kind)} - set(value)
        assert not missing, f"{kind.__name__}: {missing}"

    named(raw, Site)
    for name in ("container", "launch", "gpus", "defaults"):
        named(raw[name], type(getattr(site, name)))
    named({key: value for part in raw["partitions"] for key, value in part.items()}, Partition)
    assert "example" not in sites.names()


def test_every_key_of_the_example_has_a_comment_of_its_own_or_speaks_for_itself():
    plain = {"schema", "name", "features", "gpus", "partition", "qos", "time"}
    lines = EXAMPLE.read_text().splitlines()
    for above, line in itertools.pairwise(lines):
        key = line.partition(" = ")[0]
        if " = " in line and not line.startswith("#") and key not in plain | {"gpu", "LD_LIBRARY_PATH"}:
            assert above.startswith(("#", "[env]")), line


def test_a_persons_own_profile_comes_first(own):
    (own / "juwels.toml").write_text(LEAST)
    (own / "mine.toml").write_text(LEAST)
    (own / "no name.toml").write_text(LEAST)
    assert sites.site("juwels").title == "A"
    assert sites.find("juwels") == own / "juwels.toml"
    assert "mine" in sites.names()
    assert "no name" not in sites.names()


def test_a_path_is_taken_as_it_is(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(LEAST)
    assert sites.site(str(file)).title == "A"
    with pytest.raises(BadInput, match="no such file"):
        sites.site(str(tmp_path / "b.toml"))


@every_row("name", ["juwls", "../x", "", "a\nb", "-x", "x" * 300, "/" + "x" * 5000])
def test_a_name_that_is_none_lists_the_choices(own, tmp_path, monkeypatch, name):
    folder = tmp_path / "empty" / "below"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput) as caught:
        sites.site(name)
    assert "\n" not in caught.value.message
    assert "no such file" in caught.value.message or "choices: archer2, " in caught.value.message


def test_what_is_meant_is_guessed():
    with pytest.raises(BadInput, match=r"site 'juwells': not found \(did you mean juwels"):
        sites.site("juwells")


@every_row(
    ("text", "words"),
    [
        ("titel = 'A'", ["a.toml:1: titel: unknown field (did you mean title?); choices: schema"]),
        ("title = 'A'", ["a.toml:1: schema: this field is required"]),
        ("schema = 'toolkit.site/2'\ntitle = 'A'", ["schema", "choices: toolkit.site/1"]),
        (LEAST + "tested = 'yes'", ["a.toml:3: tested: 'yes'", "choices: run, rendered"]),
        (LEAST + "[launch]\nmode = 'srun-pmi'", ["a.toml:4: launch.mode", "srun-pmi2", "gloo"]),
        (LEAST + "[container]\ncomand = 'x'", ["a.toml:4: container.comand", "did you mean command?"]),
        (LEAST + "modules = ['a', 1]", ["a.toml:3: modules[1]: expected 'str', got 'int'"]),
        (LEAST + "[[partitions]]\nname = 'a'\n[[partitions]]\nname = 'b'\nnodes = '3'",
         ["a.toml:7: partitions[1].nodes: expected 'int | null', got 'str'"]),
        (LEAST + "[[partitions]]\nname = 'a'\n[[partitions]]\nname = 'a'",
         ["a.toml:6: partitions[1].name", "two partitions have the name"]),
        (LEAST + "[[partitions]]\nname = 'a'\nnodes = 0", ["partitions[0].nodes: expected a number from 1"]),
        (LEAST + "[[partitions]]\nname = 'a'\nmax_time = '1 day'", ["partitions[0].max_time", "1-00:00:00"]),
        (LEAST + "[[partitions]]\nname = 'a'\ndefault = true\n[[partitions]]\nname = 'b'\ndefault = true",
         ["a.toml:8: partitions[1].default"]),
        (LEAST + "[defaults]\npartition = 'bach'\n[[partitions]]\nname = 'batch'",
         ["defaults.partition", "did you mean batch?", "choices: batch"]),
        (LEAST + "[defaults]\nsbatch = ['--output=x']",
         ["defaults.sbatch[0]: toolkit itself sets --output"]),
        (LEAST + "scheduler = 'pbs'", ["launch.launcher", "pals"]),
        (LEAST + "directory = '~/x'", ["a.toml:3: directory", "$WORK/toolkit"]),
        (LEAST + "title", ["a.toml:3: this is not TOML"]),
        (LEAST + "x = " + "9" * 5000, ["not TOML"]),
        (LEAST + "x = " + "[" * 5000, ["not TOML"]),
    ],
)  # fmt: skip
def test_what_will_not_do_is_told_in_one_line(text, words):
    said = refusal(text)
    for word in words:
        assert word in said


def test_files_that_are_no_text_are_told(tmp_path):
    file = tmp_path / "a.toml"
    file.write_bytes(b"title = '\xff'")
    with pytest.raises(BadInput, match="the byte at offset 9 is not UTF-8"):
        sites.site(str(file))
    file.write_bytes(b"#" * (1 << 21))
    with pytest.raises(BadInput, match="longer than 1 MiB"):
        sites.site(str(file))


HOSTILE = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["$(id)", "`id`", "a;b", "a\nb", "a b", "'", '"', "a&b", "../x", "-x", "$X`id`", "${X", "#", "|"]
    ),
)
SHELL = set("'\"`;&|<>\n\\!*?(){}[]#~ ")


def words(site: Site) -> list[str]:
    """Return the values of a profile that the job script contains, without options and constraints."""
    here = site.defaults
    return [
        *(word.removeprefix("swap ").replace(" ", "") for word in (*site.modules, *site.container.modules)),
        *site.container.binds, site.container.command, site.directory, site.shared, site.scratch,
        site.network, site.host,
        site.launch.mpi, site.gpus.gres, here.partition, here.account, here.qos, here.time, here.memory,
        *(part.name for part in site.partitions),
    ]  # fmt: skip


PLACES = (
    "modules directory shared scratch network host bind command container mpi gres partition account qos "
    "time memory"
)


@given(HOSTILE, st.sampled_from(PLACES.split()))
def test_no_word_of_the_shell_gets_in(text, where):
    replace = msgspec.structs.replace
    site = Site(schema="toolkit.site/1", title="A")
    made = {
        "modules": lambda: replace(site, modules=(text,)),
        "bind": lambda: replace(site, container=Container(binds=(text,))),
        "command": lambda: replace(site, container=Container(command=text)),
        "container": lambda: replace(site, container=Container(modules=(text,))),
        "mpi": lambda: replace(site, launch=Launch(mpi=text)),
        "gres": lambda: replace(site, gpus=replace(site.gpus, gres=text)),
        "name": lambda: replace(site, partitions=(Partition(name=text),)),
    }
    if where in {"directory", "shared", "scratch", "network", "host"}:
        hostile = replace(site, **{where: text})
    elif where in made:
        hostile = made[where]()
    else:
        hostile = replace(site, defaults=Defaults(**{where: text}))
    refused = list(objections(hostile))
    if not refused:
        for word in words(hostile):
            assert not set(word.replace("${", "").replace("}", "") if "${" in word else word) & SHELL
            assert not word.startswith("-")


VALUE = st.recursive(
    st.one_of(HOSTILE, st.integers(), st.booleans(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text("ab_", max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)
FIELD = st.sampled_from([field.encode_name for field in msgspec.structs.fields(Site)] + ["x y", "a.b", "\n"])


@given(st.dictionaries(FIELD, VALUE, max_size=4))
def test_any_table_is_a_profile_or_refused_in_a_line(table):
    from toolkit.report.toml import toml

    text = toml({"schema": "toolkit.site/1", "title": "A", **{k: v for k, v in table.items() if simple(v)}})
    try:
        assert isinstance(sites.parse(text, "a.toml"), Site)
    except BadInput as error:
        assert error.message.startswith("a.toml:")
        assert error.message.isprintable()


def simple(value: object) -> bool:
    """Return whether toolkit's TOML writer supports the value: no float, and only strings in lists."""
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return not isinstance(value, float) and (not isinstance(value, dict) or all(map(simple, value.values())))


def test_facts_stand_beside_the_profile(own):
    (own / "mine.toml").write_text(LEAST)
    assert sites.facts_file("mine") == own / "mine.facts.json"


@every_row("name", ["", "example", "a b", "x.toml", "/x", "-x"])
def test_names_that_no_profile_can_have_are_refused(name):
    with pytest.raises(BadInput, match="not a valid name for a site"):
        sites.checked_name(name)


def test_no_profile_names_a_path_of_this_machine():
    for file in Path(EXAMPLE.parent).rglob("*.toml"):
        assert str(Path(__file__).parents[3]) not in file.read_text()
