"""Suggestions of the nearest names."""

import pytest

from lakelet.model.near_names import nearest


@pytest.mark.parametrize(
    ("name", "there", "hint"),
    [
        ("ordesr", ["Orders", "customers"], "; did you mean Orders?"),
        ("x", ["b", "a"], "; there are a, b"),
        ("x", ["d", "c", "b", "a"], "; there are a, b, c, …"),
        ("x", [], "; there is none"),
    ],
)
def test_the_nearest_names_are_shown(name: str, there: list[str], hint: str) -> None:
    assert nearest(name, there) == hint
