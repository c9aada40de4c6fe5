import pytest

from analysis.wording import count, duration


@pytest.mark.parametrize(
    ("number", "text"), [(0.0, "0"), (0.25, "0.25"), (99.96, "100"), (672.0, "672"), (1322.4, "1,322")]
)
def test_a_count_has_no_powers_of_ten(number: float, text: str) -> None:
    assert count(number) == text


def test_a_duration_has_two_units_at_most() -> None:
    assert [duration(each) for each in (0.2, 61, 90_061)] == ["0 s", "1 min 1 s", "1 d 1 h"]
