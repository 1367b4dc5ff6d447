"""What `spark.read.format("lakelet")` and `df.write.format("lakelet")` are told, as options of Spark's own API.

    warehouse                            the folder or bucket, required
    table                                database.table; `load("shop.orders")` and `save("shop.orders")` give it too
    branch
    version, timestamp, tag              which version to read
    columns                              the columns to read, separated by commas
    where                                SQL over the columns
    partitionOverwriteMode               static or dynamic: what mode("overwrite") replaces
    commit-user, commit-identifier       a write that is repeated under both is done once

Everything else is an option of the connection (`s3.endpoint`) or of the table, for this job alone; unknown names are refused.
Spark does not tell the cases of names apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.errors import InvalidError
from lakelet.spark.opened_table import OpenedTable, open_table

_READ = ("version", "timestamp", "tag", "columns", "where")
_WRITE = ("partitionoverwritemode", "commit-user", "commit-identifier")
_OWN = frozenset(("warehouse", "table", "path", "branch", *_READ, *_WRITE))


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one use of the source, checked; `values` are its own, `others` those of connection and table."""

    warehouse: str
    table: str
    values: Mapping[str, str]
    # Credentials may be among them.
    others: Mapping[str, str] = field(repr=False)

    @staticmethod
    def of(given: Mapping[str, str]) -> SourceOptions:
        """Reads what Spark hands over; InvalidError for what is missing."""
        folded = {str(name).lower(): str(value) for name, value in given.items()}
        warehouse = folded.get("warehouse", "").strip()
        if not warehouse:
            raise InvalidError(
                "the lakelet source needs the option 'warehouse', the folder or bucket of the lake; a table made by "
                "CREATE TABLE … USING lakelet passes no options: use CREATE TEMPORARY VIEW … USING lakelet OPTIONS (…)"
            )
        named = {folded[name].strip() for name in ("table", "path") if folded.get(name, "").strip()}
        if not named:
            raise InvalidError("the lakelet source needs the option 'table', or load(\"database.table\")")
        if len(named) > 1:
            raise InvalidError(f"the lakelet source reads one table; found {' and '.join(sorted(named))}")
        return SourceOptions(
            warehouse,
            named.pop(),
            {name: value for name, value in folded.items() if name in _OWN},
            {name: value for name, value in folded.items() if name not in _OWN},
        )

    def open(self) -> OpenedTable:
        """The table, on the branch."""
        return open_table(self.warehouse, self.table, self.others, self.values.get("branch"))

    @property
    def columns(self) -> list[str] | None:
        """The columns to read, None for all."""
        return listed_columns(self.values.get("columns"))

    @property
    def timestamp(self) -> str | int | None:
        """The moment to read at: ISO 8601 or milliseconds."""
        text = self.values.get("timestamp")
        return int(text) if text is not None and text.isdigit() else text

    @property
    def overwrites_dynamically(self) -> bool:
        """Whether an overwrite replaces only the partitions that rows belong to."""
        mode = self.values.get("partitionoverwritemode", "static").lower()
        if mode not in ("static", "dynamic"):
            raise InvalidError(f"option 'partitionOverwriteMode': expected static or dynamic, found {mode!r}")
        return mode == "dynamic"

    @property
    def commit_identity(self) -> tuple[str | None, int | None]:
        """The user and identifier of the commit."""
        number = self.values.get("commit-identifier")
        if number is not None and not number.isdigit():
            raise InvalidError(f"option 'commit-identifier': expected a whole number from 0 on, found {number!r}")
        return self.values.get("commit-user"), None if number is None else int(number)

    def refuse_for_reading(self) -> None:
        """InvalidError for options that only writes understand."""
        self._refuse(_WRITE, "writes", "reads")

    def refuse_for_writing(self) -> None:
        """InvalidError for options that only reads understand."""
        self._refuse(_READ, "reads", "writes")

    def _refuse(self, names: tuple[str, ...], theirs: str, ours: str) -> None:
        found = [name for name in names if name in self.values]
        if found:
            raise InvalidError(f"option {found[0]!r} is for {theirs} and means nothing to {ours}")


def listed_columns(text: str | None) -> list[str] | None:
    """The columns that the option names, None where it is not given."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InvalidError(f"option 'columns': expected names separated by commas, found {text!r}")
    return names
