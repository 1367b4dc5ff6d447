"""Which classes options may name, and how they are found."""

import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.callback_classes import (
    CallbackClass,
    check_callbacks,
    commit_classes,
    find_class,
    make,
    tag_classes,
)
from lakelet.errors import InvalidError
from lakelet.options import TableOptions
from lakelet.storage.memory import MemoryStore


class Commits:
    def __init__(self, argument: str = "none") -> None:
        self.argument = argument

    def call(self, *_: object) -> None: ...

    class Inner:
        def call(self, *_: object) -> None: ...


class Tags:
    def notify_creation(self, tag_name: str, snapshot_id: int) -> None: ...
    def notify_deletion(self, tag_name: str) -> None: ...


COMMITS, TAGS = f"{__name__}.Commits", f"{__name__}.Tags"


def test_names_come_with_their_arguments_and_once() -> None:
    options = TableOptions(
        {
            "commit.callbacks": " a.B , a:C,, a.B,a.C",
            "commit.callback.a.B.param": "1",
            "commit.callback.a:C.param": "2",
            "tag.callbacks": "t.T",
            "tag.callback.t.T.param": "3",
        }
    )
    assert commit_classes(options) == (CallbackClass("a.B", "a.B", "1"), CallbackClass("a.C", "a:C", "2"))
    assert tag_classes(options) == (CallbackClass("t.T", "t.T", "3"),)
    assert commit_classes(TableOptions({})) == ()


def test_classes_are_found_by_either_spelling() -> None:
    assert find_class(CallbackClass(COMMITS, COMMITS), ("call",)) is Commits
    assert find_class(CallbackClass("x", f"{__name__}:Commits.Inner"), ("call",)) is Commits.Inner
    made = make(CallbackClass(COMMITS, COMMITS, "5"), ("call",))
    assert isinstance(made, Commits)
    assert made.argument == "5"
    assert make(CallbackClass(COMMITS, COMMITS), ("call",)).argument == "none"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        "no.such.module.Class",
        f"{__name__}.Absent",
        f"{__name__}.COMMITS",
        TAGS,
        "Class",
        "a..b",
        "1a.b",
        "a.B$C",
        "a/b.C",
        f"a.{'b' * 300}",
    ],
)
def test_a_class_that_cannot_be_used_is_refused_when_it_is_set(name: str) -> None:
    with pytest.raises(InvalidError, match="callback '") as refused:
        check_callbacks({"commit.callbacks": f"{COMMITS},{name}"})
    assert name in str(refused.value)


def test_a_tag_callback_needs_its_methods() -> None:
    check_callbacks({"tag.callbacks": TAGS, "commit.callbacks": COMMITS, "bucket": "1"})
    with pytest.raises(InvalidError, match="notify_creation and notify_deletion"):
        check_callbacks({"tag.callbacks": COMMITS})


@pytest.mark.parametrize("name", ["org.apache.paimon.Hook", "com.shop.Outer$Inner", "cn.shop.Hook", "io.github.Hook"])
def test_classes_of_java_may_be_stored(name: str) -> None:
    check_callbacks({"commit.callbacks": name, "tag.callbacks": name})


def test_create_and_alter_refuse_them_too() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    with pytest.raises(InvalidError, match=r"callback 'no\.such\.Hook' cannot be imported: ModuleNotFoundError"):
        lake.create_table("d.t", [("id", "INT")], options={"commit.callbacks": "no.such.Hook"})
    assert lake.tables("d") == []
    table = lake.create_table("d.t", [("id", "INT")], options={"tag.callbacks": "org.example.Hook"})
    with pytest.raises(InvalidError, match="cannot be imported"):
        table.set_options({"tag.callbacks": "no.such.Hook"})
    table.set_options({"tag.callbacks": TAGS, "commit.callbacks": COMMITS})
    # What is stored already is in nobody's way.
    table.set_options({"commit.callback.no.such.Hook.param": "x"})
    table.reset_options(["commit.callbacks"])
