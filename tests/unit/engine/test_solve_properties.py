"""Test that the solver agrees with brute force, for random small tables and for the shipped knowledge."""

import hashlib
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.unit.engine import brute
from tests.unit.engine.examples import HOST, with_
from tests.unit.tables import every_row
from tests.unit.thorough import count, share
from toolkit.engine.solver.constraints import constraints_of, demand_of, named_components
from toolkit.engine.solver.search import SearchProblem, find_stack, order_rows
from toolkit.engine.solver.solve import Conflict, solve
from toolkit.engine.solver.stack_prediction import predict_stack
from toolkit.image.locks.recipe import load, names, objections
from toolkit.image.locks.solve_recipe import pin_recipe
from toolkit.knowledge.components import solving_order
from toolkit.knowledge.stacks import Base, Stacks, Version, stacks
from toolkit.model.prediction import Request
from toolkit.model.recipe import HorovodWish, MpiWish, Recipe
from toolkit.probe.probe import load as load_facts


def careful(examples):
    return settings(
        max_examples=count(examples // 8, examples),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


EVIDENCE = Path(__file__).parents[2] / "evidence"
SMALL = ("openmpi", "pmix", "tensorflow", "keras", "horovod")
WISHES = st.sampled_from(["*", "1", "2", "3", ">=2", "<2", "2.*", "source *", "debian 2"])


@st.composite
def rows(draw, component):
    others = [c for c in SMALL if c != component]
    requires = draw(st.dictionaries(st.sampled_from(others), WISHES, max_size=2))
    if draw(st.booleans()):
        requires["base"] = draw(st.sampled_from(["x:*", "x:a", ("x:a", "x:b"), "x:b"]))
    if draw(st.booleans()):
        requires["python"] = draw(st.sampled_from(["3.9", ("3.9", "3.11"), ">=3.10"]))
    return Version(
        version=draw(st.sampled_from(["1", "2", "3"])),
        provider=draw(st.sampled_from(["debian", "pypi", "source", "published"])),
        requires=requires,
        fits=draw(st.dictionaries(st.sampled_from(others), WISHES, max_size=1)),
        without=tuple(draw(st.lists(st.sampled_from(others), max_size=1))),
        asked=draw(st.integers(0, 5)) == 0,
        architectures=tuple(draw(st.sampled_from([(), (), ("x86_64",), ("aarch64",)]))),
        source="drawn",
    )


@st.composite
def tables(draw):
    bases = tuple(
        Base(
            name=name,
            image=name,
            release=name,
            python=draw(st.sampled_from(["3.9", "3.11"])),
            glibc="2.36",
            architectures=draw(st.sampled_from([("x86_64",), ("x86_64", "aarch64")])),
            brings=tuple(draw(st.sampled_from([(), (), ("openmpi",)]))),
            asked=name == "x:b" and draw(st.booleans()),
            source="drawn",
        )
        for name in draw(st.sampled_from([("x:a",), ("x:a", "x:b")]))
    )
    found = {c: tuple(draw(st.lists(rows(c), min_size=0, max_size=2))) for c in SMALL}
    return Stacks(base=bases, versions=found)


@st.composite
def recipes(draw, components=SMALL, wishes=("*", "1", "2", ">=2", "<3"), bases=("", "", "x:a", "x:*", "x:b")):
    want = draw(st.dictionaries(st.sampled_from(components), st.sampled_from(wishes), max_size=4))
    want["openmpi"] = draw(st.sampled_from(["*", "match-host", "2"]))
    return Recipe(
        schema="toolkit.recipe/2",
        title="drawn",
        base=draw(st.sampled_from(bases)),
        architecture=draw(st.sampled_from(["x86_64", "x86_64", "aarch64"])),
        want=want,
        mpi=MpiWish(provider=draw(st.sampled_from(["", "", "source", "debian"]))),
    )


def rows_of(table, solution):
    """Return each stack that the solution may mean: several rows can have the same version and provider."""
    choices = [
        [r for r in table.rows(c.component) if (r.version, r.provider) == (c.version, c.provider)]
        for c in solution.chosen
    ]
    names_ = [c.component for c in solution.chosen]
    return [dict(zip(names_, rows_, strict=True)) for rows_ in brute.product(*choices)]


def check(recipe, table, host, solvable, works=None):
    asks, asked = constraints_of(recipe, host), named_components(recipe)
    found = solve(recipe, "drawn", table, host)
    if not isinstance(found, Conflict):
        assert any(
            brute.satisfies(table, asks, asked, found.architecture, stack, works)
            for stack in rows_of(table, found)
        )
        assert all(c.why and not c.why.startswith(" ") for c in found.chosen)
        return found
    solvable = remembered(solvable)
    by_text = {ask.text: ask for ask in asks}
    core = tuple(by_text[text] for text in found.constraints)
    assert core
    assert not solvable(table, core, asked, works)
    for ask in core:
        assert solvable(table, tuple(a for a in core if a is not ask), asked, works), ask.text
    assert len(found.relax) == len(core)
    for few in combinations(asks, len(core) - 1):
        assert solvable(table, few, asked, works), "a smaller set contradicts itself"
    for ask, said in zip(core, found.relax, strict=True):
        rest = tuple(a for a in asks if a is not ask and a.weaker != ask.text)
        assert ("still no solution" in said) == (not solvable(table, rest, asked, works))
    return found


def remembered(solvable):
    """Return ``solvable`` with a cache, so that brute force solves each problem only once."""
    said = {}

    def ask(table, asks, asked, works):
        key = tuple(a.text for a in asks)
        if key not in said:
            said[key] = solvable(table, asks, asked, works)
        return said[key]

    return ask


@careful(100)
@given(tables(), recipes())
def test_random_tables_are_solved_as_brute_force_does(table, recipe):
    check(recipe, table, None, brute.solvable)


@careful(60)
@given(tables(), recipes())
def test_joining_finds_what_looking_at_everything_finds(table, recipe):
    asks, asked = constraints_of(recipe, None), named_components(recipe)
    assert brute.solvable(table, asks, asked) == brute.solvable_by_joining(table, asks, asked)


@careful(100)
@given(tables(), recipes(), st.integers(0, 3))
def test_nothing_that_is_preferred_was_passed_over(table, recipe, seed):
    """For each component, the solver chooses the first row that has a solution with the earlier choices."""
    asks, asked = constraints_of(recipe, HOST), named_components(recipe)

    def works(architecture, stack):
        looked_at = sorted((c, stack[c].version) for c in ("base", "openmpi") if c in stack)
        text = f"{seed} {architecture} {looked_at}"
        return hashlib.sha256(text.encode()).digest()[0] % 2 == 0 if "openmpi" in stack else True

    everything = {
        architecture: [
            s
            for s in brute.combinations(table)
            if brute.satisfies(table, asks, asked, architecture, s, works)
        ]
        for architecture in table.architectures
    }
    found = find_stack(SearchProblem(order_rows(table), demand_of(asks), asked, works))
    assert (found is not None) == any(everything.values())
    if found is None:
        return
    architecture, stack = found
    assert stack in everything[architecture]
    before, rows = {}, order_rows(table).rows
    while undecided := [
        c for c in solving_order() if c in stack and c not in before and c in needed(asks, before)
    ]:
        component = undecided[0]
        for row in rows[component]:
            if row == stack[component]:
                break
            assert not any(
                s.get(component) == row and all(s.get(c) == r for c, r in before.items())
                for s in everything[architecture]
            )
        before[component] = stack[component]
    assert before == stack


def needed(asks, before):
    wanted = {c for ask in asks for c in ask.components}
    return {"base", "python", *wanted, *(c for row in before.values() for c in row.requires)}


REAL = (
    *("tensorflow", "torch", "torchvision", "jax", "horovod", "keras", "lightning", "accelerate"),
    *("mpi4py", "cuda", "cudnn", "nccl", "pmix", "ucx", "python"),
)
SERIES = (
    *("*", "2.12.*", "2.14.*", "2.15.*", "2.18.*", "2.20.*", ">=2.16", "<2.16", "2.15.0", "4.*", "5.*"),
    *("0.28.1", "11.*", "12.*", "13.*", "3.9", "3.11", "3.13", "<4.1", ">=1.14", "2.13.*", ">=2.21"),
)


@st.composite
def real_recipes(draw):
    table = stacks()
    want = draw(st.dictionaries(st.sampled_from(REAL), st.sampled_from(SERIES), max_size=4))
    want[draw(st.sampled_from(["openmpi", "mpich"]))] = draw(
        st.sampled_from(["*", "match-host", "4.*", "5.*", "<4.1", ">=4.1,<5"])
    )
    recipe = Recipe(
        schema="toolkit.recipe/2",
        title="drawn",
        base=draw(st.sampled_from(["", "", "", "debian:*", *(base.name for base in table.base)])),
        architecture=draw(st.sampled_from(["x86_64", "x86_64", "x86_64", *table.architectures])),
        want=want,
        horovod=HorovodWish(operations=draw(st.sampled_from([("mpi", "gloo"), ("mpi", "gloo", "nccl")]))),
        mpi=MpiWish(provider=draw(st.sampled_from(["", "", "", "debian", "pypi", "source"]))),
    )
    assume(not list(objections(recipe, table)))
    return recipe


CLUSTERS = {
    "no cluster": None,
    "pmix 5": HOST,
    "recorded": load_facts(EVIDENCE / "virtual-cluster-login.txt"),
    "pmi2 only": with_(
        HOST, slurm=with_(HOST.slurm, mpi_types=("none", "pmi2"), mpi_default="pmi2"), mpis=(), pmix=None
    ),
    "no slurm": load_facts(EVIDENCE / "no-slurm.txt"),
    "old driver": with_(HOST, gpu_driver="418.39", absent={}),
    "other processor": with_(HOST, architecture="aarch64"),
}


@careful(60)
@given(real_recipes(), st.sampled_from(sorted(CLUSTERS)))
def test_the_real_knowledge_is_solved_as_brute_force_does(recipe, cluster):
    host, table, said = CLUSTERS[cluster], stacks(), {}

    def works(architecture, stack):
        key = (architecture, *(f"{c} {stack[c].version} {stack[c].provider}" for c in sorted(stack)))
        if key not in said:
            said[key] = predict_stack(host, table, architecture, stack, recipe.operations, Request())
        return not all(said[key].values())

    found = check(recipe, table, host, brute.solvable_by_joining, works)
    if not isinstance(found, Conflict):
        again = solve(pin_recipe(recipe, found), "drawn", table)
        assert not isinstance(again, Conflict)
        assert again.versions == found.versions


@every_row("name", names())
def test_every_recipe_is_answered_within_a_second_of_processor_time(name):
    recipe = load(name).recipe
    for cluster in {"no cluster", *share(sorted(CLUSTERS), names().index(name), 3)}:
        begin = time.process_time()
        found = solve(recipe, name, stacks(), CLUSTERS[cluster])
        assert time.process_time() - begin < 1, cluster
        assert msgspec.json.encode(found)
        assert cluster != "no cluster" or not isinstance(found, Conflict), found


def test_what_is_seen_on_the_way_does_not_change_the_answer():
    recipe = Recipe(schema="toolkit.recipe/2", title="t", want={"openmpi": "*", "tensorflow": "2.15.*"})
    problem = SearchProblem(
        order_rows(stacks()), demand_of(constraints_of(recipe, None)), named_components(recipe)
    )
    assert find_stack(problem) == find_stack(replace(problem, conflicts={}))
