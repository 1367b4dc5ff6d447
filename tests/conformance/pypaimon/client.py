"""`PyPaimon`: pypaimon, its Python and its native path, as a Python object in this process.

Every call names a warehouse folder and a table `db.name`; rows are Arrow tables. `native=True` takes pypaimon-rust,
which raises where it does not support a table.

    pypaimon.create(warehouse, "shop.orders", [("id", "BIGINT NOT NULL"), ("dt", "STRING")], partitioned_by=["dt"])
    pypaimon.write(warehouse, "shop.orders", arrow_table)
    pypaimon.read(warehouse, "shop.orders", filters=[("id", "equal", 1)], native=True)
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.conformance.line_process import LineProcess

REPOSITORY = Path(__file__).parents[3]
PYTHON = REPOSITORY / ".venv-pypaimon" / "bin" / "python"
RUNNER = Path(__file__).parent / "runner.py"

ColumnType = str | Mapping[str, Any]
Warehouse = str | Path

# Column, method (equal, notEqual, lessThan, lessOrEqual, greaterThan, greaterOrEqual, isNull, isNotNull, startsWith,
# endsWith, contains, in, notIn, between, like), literals; a date, timestamp or decimal is given as its text.
Filter = tuple[Any, ...]


class PyPaimon:
    def __init__(self) -> None:
        self._process = LineProcess("pypaimon", [str(PYTHON), str(RUNNER)])
        self._exchange = tempfile.TemporaryDirectory(prefix="lakelet-pypaimon-")

    def call(self, command: str, warehouse: Warehouse, table: str, **arguments: Any) -> list[Any]:
        """Runs one command of runner.py; arguments that are None take its defaults."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return self._process.ask({"command": command, "warehouse": str(warehouse), "table": table, **given})

    def close(self) -> None:
        self._process.close()
        self._exchange.cleanup()

    def create(
        self,
        warehouse: Warehouse,
        table: str,
        columns: Iterable[tuple[str, ColumnType]],
        *,
        primary_key: Sequence[str] = (),
        partitioned_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        self.call(
            "create",
            warehouse,
            table,
            columns=[{"name": name, "type": type_} for name, type_ in columns],
            primary_key=list(primary_key),
            partitioned_by=list(partitioned_by),
            options=options,
            comment=comment,
        )

    def drop(self, warehouse: Warehouse, table: str) -> None:
        self.call("drop", warehouse, table)

    def write(
        self,
        warehouse: Warehouse,
        table: str,
        data: pa.Table,
        *,
        native: bool = False,
        overwrite: bool | Mapping[str, Any] = False,
        stream: tuple[str, int] | None = None,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> None:
        """One commit. `overwrite=True` replaces what is written to, a mapping names the partition;
        `stream` is the commit user and identifier of a streaming writer."""
        path = Path(self._exchange.name, "in.arrow")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data)
        partition = dict(overwrite) if isinstance(overwrite, Mapping) else ({} if overwrite else None)
        self.call(
            "write",
            warehouse,
            table,
            data=str(path),
            native=native,
            overwrite=partition,
            stream=stream,
            options=options,
            branch=branch,
        )

    def read(
        self,
        warehouse: Warehouse,
        table: str,
        *,
        native: bool = False,
        columns: Sequence[str] | None = None,
        filters: Iterable[Filter] = (),
        snapshot: int | None = None,
        tag: str | None = None,
        limit: int | None = None,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> pa.Table:
        path = Path(self._exchange.name, "out.arrow")
        self.call(
            "read",
            warehouse,
            table,
            out=str(path),
            native=native,
            columns=columns,
            filters=[{"field": field, "method": method, "literals": rest} for field, method, *rest in filters],
            snapshot=snapshot,
            tag=tag,
            limit=limit,
            branch=branch,
            options=options,
        )
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def version(self, warehouse: Warehouse, table: str, method: str, *arguments: Any) -> str:
        """Calls a method of the table or, `tag_manager.get`, of a manager of it; what it gives, as text."""
        (found,) = self.call("version", warehouse, table, method=method, arguments=list(arguments))
        return str(found)

    def snapshots(self, warehouse: Warehouse, table: str) -> list[dict[str, Any]]:
        """Ids and commit kinds, oldest first."""
        return self.call("snapshots", warehouse, table)

    def tags(self, warehouse: Warehouse, table: str) -> list[str]:
        return self.call("tags", warehouse, table)

    def tag(self, warehouse: Warehouse, table: str, name: str, snapshot: int | None = None) -> None:
        self.call("tag", warehouse, table, name=name, snapshot=snapshot)

    def delete_tag(self, warehouse: Warehouse, table: str, name: str) -> None:
        self.call("delete_tag", warehouse, table, name=name)

    def rollback(self, warehouse: Warehouse, table: str, to: int | str) -> None:
        """To a snapshot by its id, or to a tag by its name."""
        self.call("rollback", warehouse, table, to=to)
