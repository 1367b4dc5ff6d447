"""Tag callbacks: called for tags, and their errors do not fail the tag."""

from __future__ import annotations

from typing import ClassVar

import pytest

from lakelet.commit.callbacks.tag_callbacks import notify_creation, notify_deletion
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import home_on

told: list[tuple[object, ...]] = []


class Told:
    broken: ClassVar[bool] = False

    def __init__(self, argument: str | None = None) -> None:
        self.argument = argument

    def open(self, home: TableHome) -> None:
        told.append(("open", home.paths.root))

    def notify_creation(self, tag_name: str, snapshot_id: int) -> None:
        if self.broken:
            raise OSError("no answer")
        told.append((tag_name, snapshot_id, self.argument))

    def notify_deletion(self, tag_name: str) -> None:
        told.append((tag_name,))

    def close(self) -> None:
        told.append(("close",))


class Bare:
    def notify_creation(self, tag_name: str, snapshot_id: int) -> None:
        told.append(("bare", tag_name))

    def notify_deletion(self, tag_name: str) -> None:
        told.append(("bare", tag_name))


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    told.clear()
    monkeypatch.setattr(Told, "broken", False)


def options(*names: str) -> TableOptions:
    name = f"{__name__}.Told"
    return TableOptions({"tag.callbacks": ",".join(names) or name, f"tag.callback.{name}.param": "x"})


def test_callbacks_are_told() -> None:
    home = home_on(MemoryStore())
    notify_creation(home, options(), "eod", 3)
    notify_deletion(home, options(), "eod")
    opened = ("open", "d.db/t")
    assert told == [opened, ("eod", 3, "x"), ("close",), opened, ("eod",), ("close",)]
    notify_creation(home, TableOptions({}), "eod", 3)
    assert len(told) == 6


def test_trouble_is_reported_and_does_not_hold_up_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Told, "broken", True)
    home = home_on(MemoryStore())
    notify_creation(home, options("no.such.Class", f"{__name__}.Told", f"{__name__}.Bare"), "eod", 3)
    assert "no.such.Class" in caplog.text
    assert "the creation of tag 'eod'" in caplog.text
    assert "no answer" in caplog.text
    assert told == [("open", "d.db/t"), ("close",), ("bare", "eod")]
