"""One declaration answers for parsing, support and membership in a family."""

import pytest

from lakelet.errors import InvalidError
from lakelet.options.kinds import INT, STRING, one_of
from lakelet.options.option import ACTED, KEPT, REFUSED, declare

ENGINE = one_of("one", "two", "three")


def test_parse_names_option_expected_and_found() -> None:
    with pytest.raises(InvalidError, match=r"option 'depth': expected a whole number, found 'deep'"):
        declare("depth", INT, "1", "Depth.").parse("deep")


def test_parse_strips_surrounding_blanks_except_of_text() -> None:
    assert declare("depth", INT, "1", "Depth.").parse(" 7 ") == 7
    assert declare("label", STRING, None, "Label.").parse(" 7 ") == " 7 "


def test_a_default_of_the_wrong_kind_cannot_be_declared() -> None:
    with pytest.raises(ValueError):
        declare("depth", INT, "deep", "Depth.")


def test_a_refused_option_supports_its_default_only() -> None:
    option = declare("engine", ENGINE, "one", "Engine.", REFUSED)
    assert [option.supports(value) for value in ("one", "two")] == [True, False]


def test_flipping_the_effect_supports_every_value() -> None:
    for effect in (ACTED, KEPT):
        option = declare("engine", ENGINE, "one", "Engine.", effect)
        assert option.supports("two")
        assert not option.refuses_values


def test_listed_values_are_the_supported_ones() -> None:
    option = declare("engine", ENGINE, "one", "Engine.", ACTED, supported=("one", "three"))
    assert [option.supports(value) for value in ("one", "two", "three")] == [True, False, True]
    assert option.refuses_values


@pytest.mark.parametrize(
    ("name", "key", "member"),
    [
        ("fields.<column>.mode", "fields.a.mode", "a"),
        ("fields.<column>.mode", "fields.a.b,c.mode", "a.b,c"),
        ("fields.<column>.mode", "fields.mode", None),
        ("fields.<column>.mode", "fields.a.modes", None),
        ("callback.#.param", "callback.com.x.Call.param", "com.x.Call"),
        ("orc.<setting>", "orc.stripe.size", "stripe.size"),
        ("orc.<setting>", "orcXstripe", None),
    ],
)
def test_members_of_a_family(name: str, key: str, member: str | None) -> None:
    family = declare(name, STRING, None, "Family.")
    assert family.is_family
    assert family.member(key) == member


def test_a_plain_option_has_no_members() -> None:
    option = declare("a.b", STRING, None, "Plain.")
    assert not option.is_family
    assert option.member("a.b") is None
