"""Test the SVG pictures of a command's output."""

from docs.generate.terminal import picture


def test_a_picture_has_the_text_and_nothing_of_the_network():
    made = picture("\x1b[32mYes:\x1b[0m a\n  b", "x")
    assert "Yes:" in made
    assert "http" not in made.replace("http://www.w3.org/2000/svg", "")
    assert "@font-face" not in made


def test_spaces_at_the_beginning_move_the_text():
    made = picture("    b", "x")
    assert 'x="48.8"' in made
    assert "&#160;b" not in made


def test_light_and_dark_differ():
    assert picture("a", "x") != picture("a", "x", dark=True)
