"""Settings of a session, declared once: Lakelet's own, and those of DuckDB that may be changed.

DuckDB has many more. Those that change the meaning of a comparison, a cast or an operator would filter other rows in DuckDB than
pruning does, and store other rows by the same statement; others write files, cache files that have changed, or cannot be reset.
Only settings known to do none of this may be changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.sql.lexer.errors import nearest


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its name, allowed values, default and meaning."""

    name: str
    values: tuple[str, ...]
    default: str
    meaning: str

    def check(self, value: str) -> None:
        """InvalidError unless the value is allowed."""
        if value.lower() not in self.values:
            raise InvalidError(f"setting {self.name!r}: expected {' or '.join(self.values)}, found {value!r}")


EXECUTION_ENGINE = Setting(
    "execution.engine",
    ("local", "spark"),
    "local",
    "Where the query of an INSERT into an Iceberg table runs and its rows are written: in this process, or on the active Spark "
    "session, once lakelet.spark is imported; its text is Spark SQL then.",
)
METADATA_CACHE = Setting(
    "metadata-cache",
    ("on", "off"),
    "on",
    "Whether statements take metadata from the cache of the lake; off reads all of it from the store, like `scan(cache=False)`.",
)
_OWN = (
    Setting(
        "dynamic-partition-overwrite",
        ("true", "false"),
        "true",
        "Whether INSERT OVERWRITE without a fully named partition replaces only the partitions it has rows for; goes before the "
        "table's option of that name.",
    ),
    EXECUTION_ENGINE,
    METADATA_CACHE,
)
OWN_SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _OWN}
ENGINE_SETTINGS: dict[str, str] = {
    "TimeZone": "The zone in which texts without one are moments, and moments are shown; UTC at first.",
    "threads": "Threads that a query runs in; also `worker_threads`.",
    "worker_threads": "See `threads`.",
    "external_threads": "Threads of the program that also work on queries.",
    "memory_limit": "Memory that queries may use before rows go to the folder that TMPDIR names; also `max_memory`.",
    "max_memory": "See `memory_limit`.",
    "operator_memory_limit": "Memory for the intermediate rows of one query.",
    "max_temp_directory_size": "Disk space that rows of queries may take which do not fit into memory.",
    "streaming_buffer_size": "Rows of a result, in bytes, that are made before they are read.",
    "max_execution_time": "Milliseconds after which a query is given up; 0 for none.",
    "default_order": "The direction of ORDER BY where it says none.",
    "default_null_order": "Where ORDER BY puts NULL if it does not say; also `null_order`.",
    "null_order": "See `default_null_order`.",
    "explain_output": "Which plans EXPLAIN shows.",
    "pivot_limit": "The most columns of a PIVOT.",
    "pivot_filter_threshold": "Columns of a PIVOT from which on it is made in another way.",
    "disabled_optimizers": "Parts of DuckDB's optimizer that are left out.",
    "merge_join_threshold": "When a merge join is chosen.",
    "nested_loop_join_threshold": "When a nested loop join is chosen.",
    "asof_loop_join_threshold": "When an ASOF join is made in a loop.",
    "prefer_range_joins": "Whether a range join is chosen where there are other conditions as well.",
    "perfect_ht_threshold": "When an aggregate uses a table without hashing.",
    "ordered_aggregate_threshold": "Rows that an ordered aggregate collects before it sorts.",
    "late_materialization_max_rows": "The LIMIT up to which columns are read late.",
    "dynamic_or_filter_threshold": "Keys of a join up to which they filter the other side one by one.",
    "scheduler_process_partial": "Whether queries at the same time take turns in smaller steps.",
}


def engine_setting(name: str) -> str:
    """A setting of DuckDB that may be changed, as it is spelled there; InvalidError for all others."""
    found = next((known for known in ENGINE_SETTINGS if known.lower() == name.lower()), None)
    if found is None:
        known = (*OWN_SETTINGS, *ENGINE_SETTINGS)
        raise InvalidError(f"setting {name!r} cannot be changed{nearest(name, known)}")
    return found
