"""What it costs Spark's Python processes to start on a table: modules loaded, storage calls made."""

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import lakelet.spark as ls
from lakelet import connect
from lakelet.spark.source.data_source import LakeletDataSource
from lakelet.storage.open import open_store
from lakelet.testing.instrumented_stores import CountingStore

_LOADED = "import sys, lakelet.spark.source.data_source; print(*sys.modules)"


def test_the_data_source_loads_neither_sql_nor_jobs() -> None:
    """Spark starts a process to find the source, one for its schema, one to plan, one per core to read; each imports it."""
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    unneeded = {"sqlglot", "duckdb", "lakelet.sql", "lakelet.spark.jobs", "lakelet.spark.sql.statement"}
    assert not unneeded & loaded


def test_functions_that_are_named_like_packages() -> None:
    import lakelet.spark.sql.statement
    import lakelet.spark.write.table_write  # noqa: F401

    assert callable(ls.sql)
    assert callable(ls.write)
    assert set(ls._HOMES) == set(ls.__all__)
    with pytest.raises(AttributeError, match="no attribute 'tabel'"):
        ls.tabel  # noqa: B018


def test_storage_calls_of_the_data_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning reads each metadata file once, and a task the files of its splits, whatever the number of splits."""
    made = connect(str(tmp_path))
    made.create_database("d")
    table = made.create_table("d.t", [("id", "BIGINT"), ("p", "INT")], partitioned_by=["p"])
    table.write([{"id": number, "p": number} for number in range(30)])
    table.rename_column("id", "no")
    table.write([{"no": number, "p": number} for number in range(30)])
    store = CountingStore(open_store(str(tmp_path), {}))
    monkeypatch.setattr(sys.modules["lakelet.catalog.connect"], "open_store", lambda *_: store)
    source = LakeletDataSource({"warehouse": str(tmp_path), "path": "d.t"})
    reader = source.reader(source.schema())
    parts = reader.partitions()
    planned = Counter(path for call, path in store.log if call in ("get", "get_range"))
    data = {path for path, _ in table.files()}
    assert len(parts) == 2
    assert not data & set(planned)
    assert store.calls <= 16, store.log
    assert max(count for path, count in planned.items() if "manifest" in path) == 1
    task = pickle.loads(pickle.dumps(reader))
    copied = task._scan.home.store
    copied.reset()
    assert sum(batch.num_rows for part in parts for batch in task.read(part)) == 60
    other = [path for _, path in copied.log if path not in data]
    assert len(other) <= 2, f"the older schema, once per task: {other}"
