import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.storage.store import checked_folder, checked_path, is_hidden

SEGMENTS = st.text(st.sampled_from("ab.=%é /\\\0\n-"), max_size=4)


@given(st.lists(SEGMENTS, max_size=4).map("/".join))
def test_a_path_is_accepted_exactly_when_it_stays_below_the_root(path: str) -> None:
    good = path != "" and all(
        segment not in ("", ".", "..") and not set(segment) & {"\\", "\0", "\n"} for segment in path.split("/")
    )
    if good:
        assert checked_path(path) == path
        assert checked_folder(path) == path
    else:
        with pytest.raises(InvalidError):
            checked_path(path)


def test_the_root_is_a_folder_and_no_object() -> None:
    assert checked_folder("") == ""
    with pytest.raises(InvalidError):
        checked_path("")


def test_what_is_hidden_depends_on_the_listed_folder() -> None:
    assert is_hidden(".a", "")
    assert is_hidden("t/.a", "t")
    assert is_hidden("t/.a/b", "t")
    assert not is_hidden("t/.a/b", "t/.a")
    assert not is_hidden("t/a.b", "t")
