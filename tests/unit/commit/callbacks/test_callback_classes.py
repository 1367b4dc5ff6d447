"""Which classes options may name, and how they are found."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.callbacks.callback_classes import (
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


ALLOWED = ("tests", "no.such")
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
    assert find_class(CallbackClass(COMMITS, COMMITS), ("call",), ALLOWED) is Commits
    assert find_class(CallbackClass("x", f"{__name__}:Commits.Inner"), ("call",), ALLOWED) is Commits.Inner
    made = make(CallbackClass(COMMITS, COMMITS, "5"), ("call",), ALLOWED)
    assert isinstance(made, Commits)
    assert made.argument == "5"
    assert make(CallbackClass(COMMITS, COMMITS), ("call",), ALLOWED).argument == "none"  # type: ignore[attr-defined]


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
        check_callbacks({"commit.callbacks": f"{COMMITS},{name}"}, ALLOWED)
    assert name in str(refused.value)


def test_a_tag_callback_needs_its_methods() -> None:
    check_callbacks({"tag.callbacks": TAGS, "commit.callbacks": COMMITS, "bucket": "1"}, ALLOWED)
    with pytest.raises(InvalidError, match="notify_creation and notify_deletion"):
        check_callbacks({"tag.callbacks": COMMITS}, ALLOWED)


@pytest.mark.parametrize("name", ["org.apache.paimon.Hook", "com.shop.Outer$Inner", "cn.shop.Hook", "io.github.Hook"])
def test_classes_of_java_may_be_stored(name: str) -> None:
    check_callbacks({"commit.callbacks": name, "tag.callbacks": name})


def test_create_and_alter_refuse_them_too() -> None:
    lake = Lake(MemoryStore(), options={"callbacks.allow": ", ".join(ALLOWED)})
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


class TestAllowed:
    """To import a module is to run it: a table that somebody else prepared names none that the program did not."""

    @pytest.fixture
    def canary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        canary = tmp_path / "canary"
        code = f"from pathlib import Path\nPath({str(canary)!r}).touch()\nfrom {__name__} import Commits\n"
        (tmp_path / "strange_hook.py").write_text(code + "class Hook(Commits):\n    pass\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        yield canary
        sys.modules.pop("strange_hook", None)

    @pytest.mark.parametrize(
        "name", ["strange_hook.Hook", "strange_hook:Hook", "strange_hook.sub.Hook", "subprocess.Popen", "os:system"]
    )
    @pytest.mark.parametrize("option", ["commit.callbacks", "tag.callbacks"])
    def test_other_modules_are_refused_and_not_imported(self, canary: Path, name: str, option: str) -> None:
        lake = Lake(MemoryStore(), options={"callbacks.allow": "strange_hooks, strange, hook"})
        lake.create_database("d")
        with pytest.raises(InvalidError, match=r"is not run: this program allows no classes of .*'callbacks\.allow'"):
            lake.create_table("d.t", [("id", "INT")], options={option: name})
        table = lake.create_table("d.t", [("id", "INT")])
        with pytest.raises(InvalidError, match="this program allows no classes of"):
            table.set_options({option: name})
        assert not canary.exists()

    def test_a_commit_of_a_program_that_does_not_allow_them(
        self, canary: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = MemoryStore()
        allowing = Lake(store, options={"callbacks.allow": "strange_hook,tests"})
        allowing.create_database("d")
        options = {"commit.callbacks": "strange_hook.Hook", "tag.callbacks": TAGS}
        allowing.create_table("d.t", [("id", "INT")], options=options)
        canary.unlink()
        sys.modules.pop("strange_hook")
        table = Lake(store).table("d.t")
        assert table.write([{"id": 1}]) is not None
        table.tags.create("x")
        assert not canary.exists()
        assert "commit callback strange_hook.Hook could not be run for snapshot 1" in caplog.text
        assert "'callbacks.allow': 'strange_hook'" in caplog.text
        assert "tag callback" in caplog.text
        allowing.table("d.t").write([{"id": 2}])
        assert canary.exists()

    @pytest.mark.parametrize("name", [f"{__name__}:pytest.MonkeyPatch", f"{__name__}:Path", f"{__name__}.Iterator"])
    def test_what_an_allowed_module_imports_is_none_of_it(self, name: str) -> None:
        with pytest.raises(InvalidError, match="callback"):
            find_class(CallbackClass(name, name), (), ("tests",))

    def test_those_of_lakelet_are_allowed(self) -> None:
        name = "lakelet.callbacks.partition_registration.PartitionRegistration"
        check_callbacks({"commit.callbacks": name})
        with pytest.raises(InvalidError, match=r"allows no classes of 'lakelet\.catalog\.lake'"):
            check_callbacks({"commit.callbacks": "lakelet.catalog.lake.Lake"})

    @pytest.mark.parametrize("text", ["a/b", "*", "a b", "1a", "a..b"])
    def test_names_that_are_none(self, text: str) -> None:
        with pytest.raises(InvalidError, match=r"option 'callbacks\.allow': expected modules"):
            Lake(MemoryStore(), options={"callbacks.allow": text})
