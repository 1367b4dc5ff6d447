"""Serialised compaction tasks between Java Paimon and Lakelet: the same bytes, read by either."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lakelet.format.compaction_task import (
    AppendTask,
    MultiTableTask,
    decode_append_task,
    decode_multi_table_task,
    encode_append_task,
    encode_multi_table_task,
)
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.type_parser import parse_type
from tests.conformance.java.client import JavaPaimon
from tests.golden.compaction_tasks import golden_tasks, task_from_json, task_to_json

Task = AppendTask | MultiTableTask


def random_tasks(count: int) -> list[Task]:
    """Tasks of files that differ in every member."""
    numbers = random.Random(7)

    def text(most: int = 12) -> str:
        return "".join(numbers.choices("abcé1-_.$/ ", k=numbers.randint(0, most)))

    def row() -> bytes:
        values = [None if numbers.random() < 0.2 else text() for _ in range(numbers.choice((0, 1, 2, 70)))]
        return encode_row(values, [parse_type("STRING")] * len(values))

    def maybe(value: object) -> object:
        return None if numbers.random() < 0.3 else value

    def number() -> int:
        return numbers.randint(-(2**62), 2**62) >> numbers.randint(0, 62)

    def texts() -> tuple[str, ...]:
        return tuple(text() for _ in range(numbers.choice((0, 1, 3, 40))))

    def stats() -> Stats:
        return Stats(row(), row(), tuple(maybe(number()) for _ in range(numbers.choice((0, 1, 33)))))  # type: ignore[misc]

    def file() -> DataFile:
        return DataFile(
            text(30) + "f",
            number(),
            number(),
            row(),
            row(),
            stats(),
            stats(),
            number(),
            number(),
            number(),
            numbers.randint(-(2**31), 2**31 - 1),
            texts(),
            number(),
            maybe(number()),  # type: ignore[arg-type]
            maybe(text().encode()),  # type: ignore[arg-type]
            maybe(numbers.randint(0, 1)),  # type: ignore[arg-type]
            maybe(texts()),  # type: ignore[arg-type]
            maybe(text(40)),  # type: ignore[arg-type]
            maybe(number()),  # type: ignore[arg-type]
            maybe(texts()),  # type: ignore[arg-type]
        )

    made: list[Task] = []
    for index in range(count):
        files = tuple(file() for _ in range(numbers.randint(0, 4)))
        made.append(MultiTableTask(row(), files, "d" + text(), "t" + text()) if index % 2 else AppendTask(row(), files))
    return made


def encoded(tasks: Sequence[Task]) -> list[bytes]:
    return [
        encode_append_task(task) if isinstance(task, AppendTask) else encode_multi_table_task(task) for task in tasks
    ]


def test_both_make_the_same_bytes(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    tasks = [*(task for task, _, _ in golden_tasks()), *random_tasks(60)]
    theirs = java_paimon.encode_tasks(tmp_path, map(task_to_json, tasks))
    made = [struct.pack(">i", entry["version"]) + bytes.fromhex(entry["task"]) for entry in theirs]
    assert made == encoded(tasks)


def test_java_reads_ours_and_we_read_javas(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    tasks = [*(task for task, _, _ in golden_tasks()), *random_tasks(60)]
    ours = [
        {"version": int.from_bytes(data[:4]), "many": isinstance(task, MultiTableTask), "task": data[4:].hex()}
        for task, data in zip(tasks, encoded(tasks), strict=True)
    ]
    # Java reads a missing creation time as 1970.
    expected = [
        replace(task, files=tuple(replace(file, creation_ms=file.creation_ms or 0) for file in task.files))
        for task in tasks
    ]
    assert [task_from_json(entry) for entry in java_paimon.decode_tasks(tmp_path, ours)] == expected
    theirs = java_paimon.encode_tasks(tmp_path, map(task_to_json, tasks))
    for task, entry in zip(tasks, theirs, strict=True):
        data = struct.pack(">i", entry["version"]) + bytes.fromhex(entry["task"])
        found = decode_append_task(data) if isinstance(task, AppendTask) else decode_multi_table_task(data)
        assert found == task
