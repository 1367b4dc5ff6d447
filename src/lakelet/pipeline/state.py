"""The state of a pipeline between runs: which generation of each target is being filled, and where its checkpoints are.

    <state>/lock                                     held by the process that runs the pipeline, on a local disk
    <state>/targets/<target>/generation.json         {"id": "…", "table": "…", "refreshing": false}
    <state>/targets/<target>/<id>/<flow>/…           the checkpoint of a streaming flow
    <state>/targets/<target>/<id>/<flow>/streams.json  what the offsets of the checkpoint are of, in their order
    <state>/targets/<target>/<id>/<flow>/done        of a flow that runs once: it has

A full refresh starts a new generation. Its record is written first, as `refreshing`; then the table is emptied; then the
record is written without the mark. A run that finds the mark empties the table again, so that a process killed in between
leaves neither rows of the old generation beside those of the new one nor an old checkpoint over an empty table.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from urllib.parse import quote

from lakelet.errors import ConflictError, CorruptionError, InvalidError, NotFoundError
from lakelet.ids import Ids
from lakelet.storage.store import ObjectStore

FOLDER = "_pipelines"


@dataclass(frozen=True, slots=True)
class Generation:
    """One filling of a target from its beginning. `table` is the identity of the table that it fills, None for a sink."""

    id: str
    table: str | None = None
    refreshing: bool = False


@dataclass(frozen=True, slots=True)
class PipelineState:
    """The state folder of a pipeline; `store` is rooted in it."""

    store: ObjectStore
    ids: Ids

    def generation(self, target: str) -> Generation | None:
        """The generation of a target, None before its first one."""
        path = self._record(target)
        try:
            found = json.loads(self.store.get(path))
            return Generation(str(found["id"]), found["table"], bool(found["refreshing"]))
        except NotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptionError(f"{self.store.location}/{path} is no record of a generation: {error}") from error

    def begin(self, target: str, table: str | None, empty: Callable[[], str | None] | None) -> Generation:
        """Starts a generation; `empty` removes what an earlier one left and returns the table's identity, again after a crash."""
        made = Generation(self.ids.uuid(), table, refreshing=empty is not None)
        self._put(target, made)
        return made if empty is None else self.finish(target, made, empty)

    def finish(self, target: str, generation: Generation, empty: Callable[[], str | None]) -> Generation:
        """Ends the refresh that begins a generation."""
        done = replace(generation, table=empty(), refreshing=False)
        self._put(target, done)
        return done

    def forget(self, target: str, generation: Generation) -> None:
        """Removes the checkpoints of an earlier generation."""
        self.store.delete_folder(f"{self._folder(target)}/{generation.id}")

    def checkpoint(self, target: str, generation: Generation, flow: str) -> str:
        """The checkpoint folder of a flow."""
        return f"{self.store.location}/{self._folder(target)}/{generation.id}/{_segment(flow)}"

    def is_done(self, target: str, generation: Generation, flow: str) -> bool:
        """Whether a flow that runs once has run in a generation."""
        return self.store.head(self._in_checkpoint(target, generation, flow, "done")) is not None

    def set_done(self, target: str, generation: Generation, flow: str) -> None:
        """Notes that a flow has run in a generation."""
        self.store.put(self._in_checkpoint(target, generation, flow, "done"), b"{}")

    def streams(self, target: str, generation: Generation, flow: str) -> list[dict[str, str]] | None:
        """The streams whose offsets the checkpoint of a flow has, None before its first run."""
        path = self._in_checkpoint(target, generation, flow, "streams.json")
        try:
            return [{str(key): str(text) for key, text in one.items()} for one in json.loads(self.store.get(path))]
        except NotFoundError:
            return None
        except (ValueError, AttributeError, TypeError) as error:
            raise CorruptionError(f"{self.store.location}/{path} is no list of streams: {error}") from error

    def put_streams(self, target: str, generation: Generation, flow: str, streams: list[dict[str, str]]) -> None:
        """Notes the streams of a flow."""
        path = self._in_checkpoint(target, generation, flow, "streams.json")
        self.store.put(path, json.dumps(streams, ensure_ascii=False).encode())

    @contextmanager
    def locked(self, what: str) -> Iterator[None]:
        """Holds the lock of the pipeline, on a local disk, at most until the process ends; ConflictError where another has it."""
        if "://" in self.store.location:
            yield
            return
        os.makedirs(self.store.location, exist_ok=True)
        with open(os.path.join(self.store.location, "lock"), "a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(f"{what} is being run by another process ({file.name} is locked)") from None
            yield

    def _put(self, target: str, generation: Generation) -> None:
        record = {"id": generation.id, "table": generation.table, "refreshing": generation.refreshing, "target": target}
        self.store.put(self._record(target), json.dumps(record, ensure_ascii=False).encode())

    def _folder(self, target: str) -> str:
        return f"targets/{_segment(target)}"

    def _in_checkpoint(self, target: str, generation: Generation, flow: str, name: str) -> str:
        return f"{self._folder(target)}/{generation.id}/{_segment(flow)}/{name}"

    def _record(self, target: str) -> str:
        return f"{self._folder(target)}/generation.json"


def _segment(name: str) -> str:
    """A name as a folder; names that differ in case alone are one in a pipeline."""
    spelled = quote(name.lower(), safe="")
    if not spelled or len(spelled) > 200:
        raise InvalidError(f"name {name!r} is too long for a folder of the pipeline's state")
    return f"%2E{spelled[1:]}" if spelled.startswith(".") else spelled
