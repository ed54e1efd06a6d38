"""Test that no rule raises an error or guesses, and that fewer known facts never give a better outcome."""

from typing import Any, get_args

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.engine.fixtures import tables
from tests.unit.engine.strategies import hosts, images, requests
from tests.unit.engine.whole import HOST, IMAGE
from tests.unit.tables import every_row
from tests.unit.thorough import count, share
from toolkit.engine.case import Case
from toolkit.engine.predict import judge_host, predict, predict_plan, will_work
from toolkit.engine.registry import RULES
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.finding import Finding
from toolkit.model.prediction import MPI_MODES, Outcome, Prediction, Request
from toolkit.program.choose import modes_of

many = settings(
    max_examples=count(12, 400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
OUTCOMES = get_args(Outcome)
IDS = {rule.id for rule in RULES}
MPI_FACTS = {"mpi", "other_mpis", "pmix", "programs", "horovod", "horovod_built"}


def sound(finding: Finding) -> bool:
    told = (finding.title, finding.fix, finding.source)
    return finding.id in IDS and bool(finding.evidence) and all(finding.evidence) and all(told)


def sound_prediction(prediction: Prediction) -> bool:
    why = prediction.because or prediction.missing
    return prediction.outcome in OUTCOMES and bool(why) and set(prediction.findings) <= IDS


@many
@given(hosts, images, requests)
def test_no_facts_make_the_engine_raise(host: HostFacts, image: ImageFacts, request: Request):
    verdict = predict(host, image, request)
    assert tuple(p.mode for p in verdict.predictions) == modes_of(image, request)
    assert all(sound_prediction(p) for p in verdict.predictions)
    assert all(sound(f) for f in verdict.findings), [f for f in verdict.findings if not sound(f)]
    works = {p.mode for p in verdict.predictions if p.outcome == "ok"}
    assert verdict.chosen is None or verdict.chosen in works
    assert request.mode is None or verdict.chosen in {None, request.mode}


@many
@given(hosts)
def test_no_host_makes_its_own_page_raise(host: HostFacts):
    assert all(sound(f) for f in judge_host(host))


@many
@given(hosts, images, requests, st.data())
def test_no_words_of_a_plan_make_the_engine_raise(
    host: HostFacts, image: ImageFacts, request: Request, data: st.DataObject
):
    plans = [p.plan for p in predict(host, image, request).predictions if p.plan]
    if not plans:
        return
    words = st.sampled_from(
        ("--nv", "-e", "--cleanenv", "--contain", "-C", "--pid", "--sharens", "x", "", "/tmp", ":")
    )
    plan = msgspec.structs.replace(
        data.draw(st.sampled_from(plans)),
        container=data.draw(st.lists(words, max_size=3).map(tuple)),
        binds=data.draw(st.lists(words, max_size=3).map(tuple)),
        env=data.draw(st.dictionaries(words, words, max_size=2)),
        unset=data.draw(st.lists(words, max_size=2).map(tuple)),
    )
    assert sound_prediction(predict_plan(host, image, request, plan))


@many
@given(hosts, images, requests)
def test_a_verdict_can_be_written_and_read(host: HostFacts, image: ImageFacts, request: Request):
    verdict = predict(host, image, request)
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=type(verdict)) == verdict


@many
@given(hosts, st.integers(2, 4))
def test_an_image_of_which_nothing_is_known_is_never_called_good(host: HostFacts, nodes: int):
    verdict = predict(host, ImageFacts(path="x", format="sif"), Request(nodes=nodes))
    assert "ok" not in {p.outcome for p in verdict.predictions}
    for prediction in verdict.predictions:
        assert prediction.outcome != "unknown" or prediction.missing or prediction.because


@many
@given(images, st.integers(2, 4))
def test_a_host_of_which_nothing_is_known_is_never_called_good(image: ImageFacts, nodes: int):
    verdict = predict(HostFacts(place="x"), image, Request(nodes=nodes))
    assert "ok" not in {p.outcome for p in verdict.predictions}
    assert all(p.missing for p in verdict.predictions if p.outcome == "unknown")


@many
@given(hosts, images)
def test_where_the_mpi_could_not_be_read_no_mode_of_it_is_called_good(host: HostFacts, image: ImageFacts):
    book = {**image.unknown, **dict.fromkeys(MPI_FACTS, "could not be read")}
    gone: dict[str, Any] = {"mpi": None, "other_mpis": (), "pmix": None, "programs": {}}
    unread = msgspec.structs.replace(image, unknown=book, horovod=None, horovod_built=None, **gone)
    verdict = predict(host, unread, Request(nodes=2))
    assert "ok" not in {p.outcome for p in verdict.predictions if p.mode in MPI_MODES and p.mode != "bind"}


def forget(facts: Any, name: str) -> Any:
    """Return a copy in which one fact, such as ``pmix`` or ``mpi.version``, could not be read."""
    first, _, rest = name.partition(".")
    book = {**facts.unknown, name: "could not be read"}
    absent = {k: v for k, v in facts.absent.items() if k != name}
    inner = getattr(facts, first)
    if rest:
        value = msgspec.structs.replace(inner, **{rest: _nothing(getattr(inner, rest))})
    else:
        value = _nothing(inner)
    return msgspec.structs.replace(facts, unknown=book, absent=absent, **{first: value})


def _nothing(value: object) -> object:
    return {} if isinstance(value, dict) else None


def forgettable(of: Case) -> list[tuple[str, str]]:
    """Return the known facts that a rule for this launch mode uses, as pairs such as ``("host", "pmix")``."""
    names = sorted({fact for rule in RULES if of.mode in rule.modes for fact in rule.facts})
    found = [(side, field) for side, _, field in (name.partition(".") for name in names)]
    return [
        (side, field)
        for side, field in found
        if _has(of.host_facts if side == "host" else of.image_facts, field)
    ]


def _has(facts: Any, field: str) -> bool:
    first, _, rest = field.partition(".")
    inner = getattr(facts, first)
    # An image always has an environment, whose unknown variables are listed by name. toolkit assumes that a
    # program that it cannot find keeps the launcher's variables. It assumes that users can open /dev/fuse
    # unless a probe saw the contrary: nodes with Apptainer usually allow it.
    if field in {"path", "format", "environment", "program", "fuse_device"} or field in facts.unknown:
        return False
    return (inner is not None and hasattr(inner, rest)) if rest else True


FIRES = [(f"{name}-{number}", of) for name, cases in tables()[0].items() for number, of in enumerate(cases)]


@every_row("number", range(len(FIRES)), ids=[name for name, _ in FIRES])
def test_to_know_less_never_makes_a_failure_good(number: int):
    of = FIRES[number][1]
    if predict_plan(of.host_facts, of.image_facts, of.request, of.plan).outcome in {"ok", "unknown"}:
        return
    for side, field in share(forgettable(of), number, 8):
        host = forget(of.host_facts, field) if side == "host" else of.host_facts
        image = forget(of.image_facts, field) if side == "image" else of.image_facts
        assert not will_work(host, image, of.request, of.plan), (
            f"without {side}.{field} this failure is called ok"
        )


@many
@given(hosts, images, st.data())
def test_to_know_less_of_any_facts_never_makes_a_failure_good(
    host: HostFacts, image: ImageFacts, data: st.DataObject
):
    request = Request(nodes=2)
    for prediction in predict(host, image, request).predictions:
        if prediction.outcome in {"ok", "unknown"} or prediction.plan is None:
            continue
        of = Case(host, image, request, prediction.plan)
        side, field = data.draw(st.sampled_from(forgettable(of)))
        less = (forget(host, field), image) if side == "host" else (host, forget(image, field))
        assert not will_work(*less, request, prediction.plan), f"without {side}.{field}"


def test_the_whole_example_is_launched_without_a_finding_that_matters():
    verdict = predict(HOST, IMAGE, Request(nodes=2, mode="srun-pmix"))
    assert verdict.chosen == "srun-pmix"
    wrong = [f.id for f in verdict.findings if f.severity != "info" and not f.modes]
    assert not wrong
