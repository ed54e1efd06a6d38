"""Test some users' programs; tests/full/programs tests the remaining programs."""

import pytest

from tests.services.attempts import attempt


@pytest.mark.parametrize(
    "name", ["three files", "keras on two nodes", "a missing import", "mpirun in the command"]
)
def test_a_program_of_a_user(name, on, tmp_path):
    attempt(name, on, tmp_path)
