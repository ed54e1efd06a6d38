from toolkit.run.web.http import pause_before


def test_a_pause_is_what_the_server_asks_for_or_doubles_and_is_never_long():
    assert pause_before(1, "7") == 7
    assert pause_before(50, "999999999999") == pause_before(50, "30") == 30
    assert 0.3 < pause_before(1, "nonsense") < 0.7
    assert 1.4 < pause_before(3) < 2.6
    assert pause_before(50) < 40
