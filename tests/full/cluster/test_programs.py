"""Programs of users: each runs right on two nodes with one command, or is refused before it is submitted."""

import pytest

from tests.services.attempts import attempt
from tests.services.programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_or_is_refused_with_the_sentence_that_helps(name, on, tmp_path):
    attempt(name, on, tmp_path)
