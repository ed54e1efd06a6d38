"""Test that toolkit runs each user's program on two nodes, or refuses it before the submission."""

import pytest

from tests.services.attempts import attempt, attempt_on_login, command_of, judge
from tests.services.jobs import last_record, launched
from tests.services.program import toolkit
from tests.services.programs import PROGRAMS


@pytest.fixture(scope="module")
def there(on):
    launched(on, "--no-preflight", "--", "true")
    return last_record()["spec"]["image"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_or_is_refused_with_the_sentence_that_helps(name, on, tmp_path):
    attempt(name, on, tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_the_login_node_runs_where_it_is_or_is_refused(name, cluster, there):
    attempt_on_login(name, cluster, there)


@pytest.fixture(scope="module")
def facts(cluster, tmp_path_factory):
    file = tmp_path_factory.mktemp("facts") / "facts.json"
    toolkit("probe", "--cluster", cluster.name, "-o", str(file))
    return file


@pytest.mark.parametrize("name", [name for name in PROGRAMS if command_of(name)])
def test_the_doctor_says_no_to_what_launch_refuses(name, training_sif, facts, tmp_path):
    judge(name, training_sif, facts, tmp_path / "work")
