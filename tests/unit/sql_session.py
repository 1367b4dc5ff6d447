"""Statements against a lake in memory: what they give, and what they say when they fail."""

from typing import Any

import pytest

from lakelet import Lake
from lakelet.errors import LakeletError
from lakelet.sql.lexer.errors import SqlError, UnknownNameError
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import ObjectStore


class SqlSession:
    """A session with an empty lake."""

    def __init__(self, store: ObjectStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.lake = Lake(self.store)
        self.session = Session(self.lake)

    def rows(self, *texts: str, **more: Any) -> list[tuple[Any, ...]]:
        """The rows that the last of these statements gives."""
        found: list[tuple[Any, ...]] = []
        for text in texts:
            found = self.session.run(text, **more).rows()
        return found

    def column(self, text: str) -> list[Any]:
        """The first column of what a statement gives."""
        return [row[0] for row in self.rows(text)]

    def done(self, text: str) -> str:
        """What a statement says that it did."""
        message = self.session.run(text).message
        assert message is not None
        return message

    def fails(self, text: str, reason: str, at: str | None = None, kind: type[LakeletError] = SqlError) -> None:
        """Asserts that a statement fails, at the place marked by `at` (the text from there on), and changes nothing."""
        before = self.files()
        with pytest.raises(kind, match=reason) as caught:
            self.session.run(text).rows()
        if at is not None:
            assert isinstance(caught.value, (SqlError, UnknownNameError)), caught.value
            lines = text.split("\n")
            rest = "\n".join([lines[caught.value.line - 1][caught.value.column - 1 :], *lines[caught.value.line :]])
            assert rest.startswith(at), f"{caught.value} is at {rest!r}"
        assert self.files() == before

    def files(self) -> dict[str, bytes]:
        """All that is stored."""
        return {info.path: self.store.get(info.path) for info in self.store.list("")}
