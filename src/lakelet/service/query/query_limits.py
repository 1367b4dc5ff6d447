"""The limits of queries: time, rows, bytes, memory, and how many run at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from lakelet.errors import InvalidError
from lakelet.service.settings import ServiceSettings

# Rows of which a result is made, in bytes of a whole result.
_MORE_GATHERED = 4


class QueryLimitError(InvalidError):
    """A query that went beyond a limit: the same one would again."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may take, and all together.

    `seconds` of one query, its time to wait included; `rows` and `bytes` of its result, as JSON text or Arrow; `running` queries
    at the same time, and the seconds that others wait for their turn (`wait_seconds`). `memory_limit` and `spill_limit` are those
    of all queries together in DuckDB's words, such as `2GB`, `threads` those they share; empty, or 0, is DuckDB's default. A
    query that takes `slow_seconds` is logged. One that reads `spread_bytes` of a table is spread over the workers of a cluster,
    one that reads `spark_bytes` over tasks of Spark, where there is one.
    """

    seconds: float = 60.0
    rows: int = 1_000_000
    bytes: int = 256 << 20
    running: int = 8
    wait_seconds: float = 10.0
    sql_bytes: int = 1 << 18
    memory_limit: str = ""
    spill_limit: str = ""
    threads: int = 0
    slow_seconds: float = 5.0
    spread_bytes: int = 256 << 20
    spark_bytes: int = 64 << 30

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = (
                0 if field.name in ("threads", "wait_seconds", "slow_seconds", "spread_bytes", "spark_bytes") else 1e-9
            )
            if not isinstance(value, str) and value < least:
                raise InvalidError(f"query limit {field.name!r}: expected a number above 0, found {value!r}")

    @classmethod
    def of(cls, settings: ServiceSettings) -> Self:
        """The limits that the settings of a process name."""
        return cls(
            seconds=settings.query_seconds,
            rows=settings.query_rows,
            bytes=settings.query_bytes,
            running=settings.query_running,
            memory_limit=settings.query_memory or "",
            slow_seconds=settings.slow_query_seconds,
            spread_bytes=settings.query_spread_bytes,
            spark_bytes=settings.query_spark_bytes,
        )

    @property
    def gathered_bytes(self) -> int:
        """What a node may send of a query that several nodes run."""
        return self.bytes * _MORE_GATHERED

    def engine_settings(self) -> dict[str, str]:
        """The settings of DuckDB that hold for all queries together."""
        chosen = {"memory_limit": self.memory_limit, "max_temp_directory_size": self.spill_limit}
        if self.threads:
            chosen["threads"] = str(self.threads)
        return {name: value for name, value in chosen.items() if value}
