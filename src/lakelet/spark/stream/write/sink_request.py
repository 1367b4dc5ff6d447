"""The checked arguments of `ls.write_stream` and `ls.write_batch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lakelet.errors import InvalidError
from lakelet.spark.stream.write.event_time import WatermarkRule
from lakelet.spark.write.write_request import DRIVER_BYTES, WriteRequest, is_whole

_MODES = ("append", "upsert", "overwrite_partitions")
_COMPACTION = ("inline", "background", "none")
DRIVER_ROWS = 100_000
COMPACT_EVERY = 10

# A table's rows as a function of the batch; None for the batch itself.
RowsOf = Callable[[DataFrame], DataFrame]
Tables = str | Mapping[str, RowsOf | None]


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """How batches of a stream are written; InvalidError for arguments that make no sense.

    A batch of at most `driver_rows` rows and `driver_bytes` bytes is written by the driver, a larger one by tasks. Every
    `compact_every` batches files are looked through for compaction, `compaction` says where. With `resume` batches that the table
    has from the same user are skipped although the checkpoint cannot be theirs.
    """

    mode: str = "upsert"
    kinds: str | None = None
    on_duplicate: str = "raise"
    missing: str | None = None
    merge_schema: bool = False
    watermark: WatermarkRule | None = None
    compaction: str = "inline"
    compact_every: int = COMPACT_EVERY
    driver_rows: int = DRIVER_ROWS
    driver_bytes: int = DRIVER_BYTES
    parallelism: int | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidError(f"mode {self.mode!r}: expected one of {', '.join(_MODES)}")
        if self.compaction not in _COMPACTION:
            raise InvalidError(f"compaction {self.compaction!r}: expected one of {', '.join(_COMPACTION)}")
        if not is_whole(self.compact_every) or self.compact_every < 1:
            raise InvalidError(f"compact_every {self.compact_every!r}: expected a whole number from 1 on")
        self.of_batch(None, 0, None)

    def of_batch(self, user: str | None, batch_id: int, properties: Mapping[str, str] | None) -> WriteRequest:
        """The write of one batch."""
        is_turn = (batch_id + 1) % self.compact_every == 0
        return WriteRequest(
            mode=self.mode,
            on_duplicate=self.on_duplicate,
            kinds=self.kinds,
            missing=self.missing,
            commit_user=user,
            commit_identifier=batch_id,
            parallelism=self.parallelism,
            driver_rows=self.driver_rows,
            driver_bytes=self.driver_bytes,
            properties=properties,
            ignores_empty=True,
            looks=self.compaction == "inline" and is_turn,
        )

    def compacts_after(self, batch_id: int) -> bool:
        """Whether a background compaction is due after a batch."""
        return self.compaction == "background" and (batch_id + 1) % self.compact_every == 0


def table_functions(table: Tables) -> dict[str, RowsOf | None]:
    """The tables of a sink with the functions that make their rows; InvalidError where there is none or one is not callable."""
    if isinstance(table, str):
        return {table: None}
    given: object = table
    if not isinstance(given, Mapping) or not given:
        raise InvalidError(f"table: expected a name, or a mapping of names to functions of the batch, found {table!r}")
    for name, rows_of in given.items():
        if not isinstance(name, str) or not (rows_of is None or callable(rows_of)):
            raise InvalidError(f"table: expected names and functions of the batch, found {name!r}: {rows_of!r}")
    return dict(given)
