"""`IcebergSpark`: Iceberg's own Spark runtime, and DuckDB's Iceberg extension, as a Python object in this process.

Every call names a lake's folder; `iceberg` is the lake's own catalog, in a Spark session of its own for each lake. Rows are
Arrow tables.

    iceberg_spark.sql(folder, "CREATE TABLE iceberg.shop.orders (id bigint) USING iceberg PARTITIONED BY (bucket(4, id))")
    iceberg_spark.insert(folder, "shop.orders", rows)
    iceberg_spark.sql(folder, "SELECT * FROM iceberg.shop.orders.files")
    iceberg_spark.planned(folder, "shop.orders", "id = 5")
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.conformance.line_process import LineProcess
from tests.spark.java import BRIEF

REPOSITORY = Path(__file__).parents[3]
PYTHON = REPOSITORY / ".venv-iceberg" / "bin" / "python"
RUNNER = Path(__file__).parent / "runner.py"
JARS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakelet" / "jars"
JARS_LIST = Path(__file__).parent / "jars.sha256"


def jars() -> list[Path]:
    """The jars that Spark is started with, there or not."""
    return [JARS / line.split()[1] for line in JARS_LIST.read_text().splitlines()]


class IcebergSpark:
    def __init__(self, java_home: str) -> None:
        self._exchange = tempfile.TemporaryDirectory(prefix="lakelet-iceberg-")
        variables = {
            "JAVA_HOME": java_home,
            "PYSPARK_PYTHON": str(PYTHON),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": BRIEF,
            "ICEBERG_JARS": ",".join(map(str, jars())),
            "ICEBERG_LOCAL": self._exchange.name,
        }
        assigned = [f"{name}={value}" for name, value in variables.items()]
        # Another Spark's home would be taken for this one's.
        command = ["env", "-u", "SPARK_HOME", "-u", "PYTHONPATH", *assigned, str(PYTHON), str(RUNNER)]
        self._process = LineProcess("Iceberg-Spark", command)
        # In a process of its own: what its extension cannot read may end the process.
        self._duckdb = LineProcess("DuckDB", [str(PYTHON), str(RUNNER)])

    def close(self) -> None:
        self._process.close()
        self._duckdb.close()
        self._exchange.cleanup()

    def sql(self, folder: Path, query: str) -> pa.Table:
        """Runs a statement in Spark, and gives its rows."""
        return self._rows(self._process, command="sql", folder=str(folder), query=query)

    def duckdb(self, query: str) -> pa.Table:
        """Runs a query in DuckDB; a table is named as `iceberg_scan('…metadata.json')`."""
        return self._rows(self._duckdb, command="duckdb_sql", query=query)

    def insert(
        self, folder: Path, table: str, rows: pa.Table, *, mode: str = "append", branch: str | None = None
    ) -> None:
        """One commit: append, or overwrite_partitions."""
        path = f"{self._exchange.name}/in.arrow"
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        self._ask(command="insert", folder=str(folder), table=table, data=path, mode=mode, branch=branch)

    def planned(self, folder: Path, table: str, where: str, *, snapshot: int | None = None) -> list[str]:
        """The paths of the data files that Iceberg's planning leaves for a predicate."""
        return self._ask(command="planned", folder=str(folder), table=table, where=where, snapshot=snapshot)

    def equality_delete(self, folder: Path, table: str, columns: list[str], where: str) -> int:
        """Commits equality deletes, by `columns`, of the rows where a predicate holds; gives the number of files."""
        (files,) = self._ask(command="equality_delete", folder=str(folder), table=table, columns=columns, where=where)
        return int(files)

    def add_int(self, folder: Path, table: str, column: str, default: int) -> None:
        """Adds an int column that rows from before show with a value of its own."""
        self._ask(command="add_int", folder=str(folder), table=table, column=column, default=default)

    def _rows(self, process: LineProcess, **request: Any) -> pa.Table:
        path = f"{self._exchange.name}/out.arrow"
        process.ask({**request, "out": path})
        with pa.OSFile(path) as source:
            return pa.ipc.open_file(source).read_all()

    def _ask(self, **request: Any) -> list[Any]:
        return self._process.ask({name: value for name, value in request.items() if value is not None})
