"""A source of metadata that notes what it is asked, and one that answers pointers from memory however old they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from lakelet.commit.metadata.source import UNCACHED
from lakelet.model.manifest import BlockFilter, IndexManifestEntry, ManifestFile
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.tag import Tag
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import MetadataSource

T = TypeVar("T")


class RecordingSource:
    """Asks the store, and keeps `asked`: a list of (question, branch root or name)."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def questions(self) -> set[str]:
        return {question for question, _ in self.asked}

    def for_queries(self) -> MetadataSource:
        return self

    def latest_snapshot(self, home: TableHome) -> Snapshot | None:
        return self._answer("latest_snapshot", home.paths.branch_root, lambda: UNCACHED.latest_snapshot(home))

    def latest_schema(self, home: TableHome) -> TableSchema:
        return self._answer("latest_schema", home.paths.branch_root, lambda: UNCACHED.latest_schema(home))

    def newest(self, home: TableHome) -> tuple[Snapshot | None, TableSchema]:
        return self.latest_snapshot(home), self.latest_schema(home)

    def kept(self, home: TableHome) -> None:
        return None

    def snapshot(self, home: TableHome, number: int) -> Snapshot | None:
        path = home.paths.snapshot(number)
        return self._answer("snapshot", path, lambda: UNCACHED.snapshot(home, number))

    def tag(self, home: TableHome, name: str) -> Tag | None:
        return self._answer("tag", home.paths.tag(name), lambda: UNCACHED.tag(home, name))

    def tags(self, home: TableHome) -> tuple[Tag, ...]:
        return self._answer("tags", home.paths.branch_root, lambda: UNCACHED.tags(home))

    def schema(self, home: TableHome, number: int) -> TableSchema:
        return self._answer("schema", home.paths.schema(number), lambda: UNCACHED.schema(home, number))

    def manifest_list(self, home: TableHome, name: str) -> tuple[ManifestFile, ...]:
        return self._answer("manifest_list", home.paths.manifest(name), lambda: UNCACHED.manifest_list(home, name))

    def manifest(
        self,
        home: TableHome,
        name: str,
        columns: Sequence[str] | None = None,
        keep_blocks: BlockFilter | None = None,
    ) -> pa.Table:
        path = home.paths.manifest(name)
        return self._answer("manifest", path, lambda: UNCACHED.manifest(home, name, columns, keep_blocks))

    def index_manifest(self, home: TableHome, name: str) -> tuple[IndexManifestEntry, ...]:
        return self._answer("index_manifest", home.paths.manifest(name), lambda: UNCACHED.index_manifest(home, name))

    def _answer(self, question: str, about: str, answer: Callable[[], T]) -> T:
        with self._lock:
            self.asked.append((question, about))
        return answer()


class StaleQueries(RecordingSource):
    """Asks the store, and answers queries with the pointers as they were when a query first asked for them."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = _FirstPointers()

    def for_queries(self) -> MetadataSource:
        return self.queries


class _FirstPointers(RecordingSource):
    def __init__(self) -> None:
        super().__init__()
        self._first: dict[tuple[str, str], object] = {}

    def _answer(self, question: str, about: str, answer: Callable[[], T]) -> T:
        if question in ("manifest_list", "manifest", "index_manifest"):
            return answer()
        if (question, about) not in self._first:
            self._first[(question, about)] = answer()
        return self._first[(question, about)]  # type: ignore[return-value]

    def forget(self) -> None:
        self._first.clear()
