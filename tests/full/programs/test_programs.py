"""Test users' programs: one command runs each on two nodes, or toolkit refuses it before it submits a job."""

import pytest

from tests.services.attempts import attempt, attempt_on_login
from tests.services.jobs import last_record, launched
from tests.services.programs import PROGRAMS


@pytest.fixture(scope="module")
def there(on):
    """Return the path of the training image on the cluster."""
    launched(on, "--no-preflight", "--", "true")
    return last_record()["spec"]["image"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_or_is_refused_with_the_sentence_that_helps(name, on, tmp_path):
    attempt(name, on, tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_the_login_node_runs_where_it_is_or_is_refused(name, cluster, there):
    attempt_on_login(name, cluster, there)
