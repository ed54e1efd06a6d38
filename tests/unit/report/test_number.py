from tests.unit.tables import every_row
from toolkit.number import number


@every_row(
    ("value", "said"),
    [
        (0.4231, "0.423"),
        (8.0, "8"),
        (25.44, "25.4"),
        (999.6, "1,000"),
        (0.9996, "1"),
        (3457.2, "3,457"),
        (1234567.0, "1,234,567"),
        (0.0000123, "0.0000123"),
        (0.0, "0"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_has_three_digits_and_is_never_a_power_of_ten(value, said):
    assert number(value) == said


def test_a_number_may_have_more_digits_or_fewer():
    assert (number(12346.2, 4), number(12.3456, 4), number(120.4, 2)) == ("12,346", "12.35", "120")
