"""Parse the options that the sources "lakelet" and "lakelet-iceberg" share, and the columns of a schema given to a reader.

    table                                database.table; `load("shop.orders")` and `save("shop.orders")` give it as `path`
    branch
    version, timestamp, tag              which version to read
    columns                              the columns to read, separated by commas
    where                                SQL over the columns
    partitionOverwriteMode               static or dynamic: what mode("overwrite") replaces

Names are case-insensitive, as in Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from lakelet.errors import InvalidError

_MODE = "partitionoverwritemode"
CHECKPOINT = "checkpointlocation"
STREAM_WRITE = ("commit.user", "resume")
_READ = ("version", "timestamp", "tag", "columns", "where")
_NAMES = frozenset(("warehouse", "table", "path", "branch", _MODE, *_READ))


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of one use of a source that are the source's own, by name in lower case; `writes` are those that only writes
    understand."""

    values: Mapping[str, str]
    writes: tuple[str, ...]

    @staticmethod
    def of(given: Mapping[str, str], *, writes: Collection[str], names: Collection[str] = ()) -> GivenOptions:
        """Picks them out of the options that Spark passes; `writes` and `names` are those that only one source has."""
        own = _NAMES.union(writes, names)
        folded = lower_case(given)
        return GivenOptions({name: text for name, text in folded.items() if name in own}, (_MODE, *writes))

    def get(self, name: str) -> str | None:
        """The text of an option, None where it is not given."""
        return self.values.get(name)

    @property
    def tables(self) -> list[str]:
        """The tables that are named, of which there should be one."""
        return sorted({self.values[name].strip() for name in ("table", "path") if self.values.get(name, "").strip()})

    @property
    def columns(self) -> list[str] | None:
        """The columns to read, None for all."""
        text = self.get("columns")
        if text is None:
            return None
        names = [name.strip() for name in text.split(",")]
        if not all(names):
            raise InvalidError(f"option 'columns': expected names separated by commas, found {text!r}")
        return names

    @property
    def timestamp(self) -> str | int | None:
        """The time to read at: ISO 8601 or milliseconds."""
        text = self.get("timestamp")
        return int(text) if text is not None and text.isdigit() else text

    @property
    def overwrites_dynamically(self) -> bool:
        """Whether an overwrite replaces only the partitions that rows belong to."""
        mode = self.values.get(_MODE, "static").lower()
        if mode not in ("static", "dynamic"):
            raise InvalidError(f"option 'partitionOverwriteMode': expected static or dynamic, found {mode!r}")
        return mode == "dynamic"

    def refuse_for_reading(self, others: Collection[str] = ()) -> None:
        """InvalidError for options that only writes understand, `others` among them."""
        _refuse([*(name for name in self.writes if name in self.values), *others], "writes", "reads")

    def refuse_for_writing(self) -> None:
        """InvalidError for options that only reads understand."""
        _refuse([name for name in _READ if name in self.values], "reads", "writes")

    def refuse_for_batches(self) -> None:
        """InvalidError for options that only the writes of a stream understand."""
        _refuse([name for name in STREAM_WRITE if name in self.values], "streams", "a batch")


def _refuse(found: list[str], theirs: str, ours: str) -> None:
    if found:
        raise InvalidError(f"option {found[0]!r} is for {theirs} and means nothing to {ours}")


def lower_case(given: Mapping[str, str]) -> dict[str, str]:
    """Options by their names in lower case."""
    return {str(name).lower(): str(text) for name, text in given.items()}


def chosen_columns(given: StructType, stored: StructType) -> tuple[str, ...]:
    """The columns of a schema given to a reader; InvalidError unless these are columns of the table, `stored`."""
    there = {field.name: field.dataType for field in stored.fields}
    for field in given.fields:
        if field.name not in there:
            raise InvalidError(f"the schema has the column {field.name!r}; the table's are {', '.join(there)}")
        found = there[field.name]
        if field.dataType != found:
            raise InvalidError(
                f"the schema has the column {field.name!r} as {field.dataType.simpleString()}, but it is {found.simpleString()}"
            )
    return tuple(field.name for field in given.fields)
