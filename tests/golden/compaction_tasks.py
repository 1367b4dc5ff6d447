"""Reads the compaction tasks that Java Paimon 1.4.2 serialised: `compaction-tasks.json`.

Each entry is a task as JSON, with the `version` of Java's serializer and the bytes it made of it as `bytes`, in hex. They were
made by `judge.sh encode-tasks` (tests/conformance/java), which is asked for them again in tests/conformance.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakelet.format.compaction_task import AppendTask, MultiTableTask
from lakelet.model.data_file import DataFile, Stats

FOLDER = Path(__file__).parent
_LISTS = ("extra_files", "value_stats_columns", "write_columns")
_BYTES = ("min_key", "max_key", "embedded_index")
_STATS = ("key_stats", "value_stats")


def golden_tasks() -> list[tuple[AppendTask | MultiTableTask, int, bytes]]:
    """Every task, its version, and the bytes behind the version."""
    entries = json.loads((FOLDER / "compaction-tasks.json").read_text())
    return [(task_from_json(entry), entry["version"], bytes.fromhex(entry["bytes"])) for entry in entries]


def task_from_json(entry: dict[str, Any]) -> AppendTask | MultiTableTask:
    """A task as Tasks.java writes it."""
    partition = bytes.fromhex(entry["partition"])
    files = tuple(_file_from_json(file) for file in entry["files"])
    if "table" in entry:
        return MultiTableTask(partition, files, entry["database"], entry["table"])
    return AppendTask(partition, files)


def task_to_json(task: AppendTask | MultiTableTask) -> dict[str, Any]:
    """The inverse."""
    entry: dict[str, Any] = {"partition": task.partition.hex(), "files": [_file_to_json(file) for file in task.files]}
    if isinstance(task, MultiTableTask):
        entry |= {"database": task.database, "table": task.table}
    return entry


def _file_from_json(entry: dict[str, Any]) -> DataFile:
    values = dict(entry)
    for name in _LISTS:
        values[name] = None if entry[name] is None else tuple(entry[name])
    for name in _BYTES:
        values[name] = None if entry[name] is None else bytes.fromhex(entry[name])
    for name in _STATS:
        stats = entry[name]
        values[name] = Stats(
            bytes.fromhex(stats["min_values"]), bytes.fromhex(stats["max_values"]), tuple(stats["null_counts"])
        )
    return DataFile(**values)


def _file_to_json(file: DataFile) -> dict[str, Any]:
    values = asdict(file)
    for name in _LISTS:
        values[name] = None if values[name] is None else list(values[name])
    for name in _BYTES:
        values[name] = None if values[name] is None else values[name].hex()
    for name in _STATS:
        stats = values[name]
        values[name] = {
            "min_values": stats["min_values"].hex(),
            "max_values": stats["max_values"].hex(),
            "null_counts": list(stats["null_counts"]),
        }
    return values
