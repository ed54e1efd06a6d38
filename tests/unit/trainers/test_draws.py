"""Test the seeds of the ranks' random numbers; image tests check the dropout masks."""

from toolkit.trainers.learning.draws import fold_seed, own_draws


def test_ranks_and_seeds_draw_from_seeds_of_their_own_that_tensorflow_takes():
    found = {fold_seed(seed, rank) for seed in range(50) for rank in range(1, 50)}
    assert len(found) == 50 * 49
    assert all(0 <= one < 2**31 for one in found)


def test_the_first_rank_draws_what_one_process_does():
    assert own_draws(print, 7, 0) is print
    assert own_draws(print, 7, 1) is not print
