"""Warehouses that a stranger prepared: whatever they name, opening, reading, writing and keeping them up runs none of it.

Every class, module and command that is named here leaves a canary when it is imported or run. The statements run in a process of
its own, as a user would start it, standing in the warehouse; each of them may fail, by an error of Lakelet's.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import lakelet

MODULE = "hostile_canary_module"
CLASS = f"{MODULE}.Class"

_PROGRAM = """
import sys, logging, lakelet
logging.disable(logging.CRITICAL)
lake = lakelet.connect(sys.argv[1])
ran = 0
for text in sys.stdin.read().split(";"):
    if not text.strip():
        continue
    try:
        result = lake.sql(text)
        result.rows()
        ran += 1
    except lakelet.LakeletError as error:
        print("refused", text.strip(), "|", str(error).splitlines()[0][:150])
for name in ("d.plain", "d.keyed", "d.pickled"):
    try:
        table = lake.table(name)
        table.write([{"id": 7, "v": 7}])
        table.tags.create("hostile")
        table.tags.delete("hostile")
        table.delete(where="id = 7")
        table.compact(full=True)
        table.analyze()
        list(table.scan().to_arrow().to_pylist())
        table.expire_snapshots(retain_last=1)
        table.remove_orphan_files(older_than="1 d")
        ran += 1
    except lakelet.LakeletError as error:
        print("refused", name, "|", error)
print("ran", ran)
"""

_READS = """
SHOW CATALOGS; SHOW DATABASES; SHOW TABLES IN d; SELECT * FROM d.plain; SELECT * FROM d.keyed;
SELECT * FROM d.plain$files; SELECT * FROM d.pickled;
SHOW DATABASES IN iceberg; SELECT * FROM iceberg.db.t; DESCRIBE EXTENDED iceberg.db.t; SELECT * FROM iceberg.db.t$files;
SHOW CREATE TABLE d.plain; EXPLAIN SELECT * FROM iceberg.db.t
"""
_WRITES = """
INSERT INTO iceberg.db.t VALUES (2); UPDATE iceberg.db.t SET a = 3; DELETE FROM iceberg.db.t WHERE a = 9;
ALTER TABLE iceberg.db.t CREATE TAG x; CALL sys.iceberg_rewrite_data_files('iceberg.db.t');
CALL sys.iceberg_expire_snapshots('iceberg.db.t'); CALL sys.iceberg_remove_orphan_files('iceberg.db.t');
INSERT INTO d.plain VALUES (1, 2); INSERT INTO d.keyed VALUES (1, 2); UPDATE d.keyed SET v = 3; DELETE FROM d.plain WHERE id = 1;
CALL sys.compact('d.keyed'); INSERT INTO d.pickled VALUES (1, 2); CALL sys.compact('d.pickled'); DROP TABLE iceberg.db.t;
INSERT INTO iceberg.db.u VALUES (2); UPDATE iceberg.db.u SET a = 3; DELETE FROM iceberg.db.u WHERE a = 9;
ALTER TABLE iceberg.db.u CREATE TAG x; CALL sys.iceberg_rewrite_data_files('iceberg.db.u'); ALTER TABLE iceberg.db.u DROP TAG x;
CALL sys.iceberg_expire_snapshots('iceberg.db.u'); CALL sys.iceberg_remove_orphan_files('iceberg.db.u'); DROP TABLE iceberg.db.u
"""
# Options of Paimon's, of Iceberg's and of pyiceberg's that name code somewhere.
_OPTIONS = {
    "commit.callbacks": f"{CLASS},subprocess.Popen,os:system",
    f"commit.callback.{CLASS}.param": "touch canary",
    "commit.callback.subprocess.Popen.param": "touch canary",
    "tag.callbacks": f"{CLASS},subprocess.Popen",
    "partition.mark-done-action.custom.class": CLASS,
    "file-index.custom.class": CLASS,
    "metastore": CLASS,
    "catalog-impl": CLASS,
    "lock.type": CLASS,
}
_PROPERTIES = ("py-io-impl", "py-catalog-impl", "auth.impl", "auth.type", "s3.retry-strategy-impl", "io-impl")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """The module that must never be imported, on the path of the process."""
    folder = tmp_path / "modules"
    folder.mkdir()
    body = (
        f"open({str(tmp_path / 'canary')!r}, 'w').close()\n"
        "class Class:\n"
        "    def __init__(self, *a, **k): pass\n"
        "    def call(self, *a): pass\n"
        "    def notify_creation(self, *a): pass\n"
        "    def notify_deletion(self, *a): pass\n"
    )
    (folder / f"{MODULE}.py").write_text(body)
    return folder


def prepare(folder: Path) -> None:
    """A lake with tables of its own and an Iceberg table, then what a stranger makes of it."""
    lake = lakelet.connect(str(folder))
    lake.sql("CREATE DATABASE d")
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t AS SELECT 1 AS a")
    lake.sql("CREATE TABLE iceberg.db.u AS SELECT 1 AS a")
    for name in ("d.plain", "d.pickled"):
        lake.create_table(name, [("id", "BIGINT"), ("v", "INT")]).write([{"id": 1, "v": 1}])
    keyed = lake.create_table("d.keyed", [("id", "BIGINT NOT NULL"), ("v", "INT")], primary_key=["id"])
    keyed.write([{"id": 1, "v": 1}])
    for schema in folder.glob("d.db/*/schema/schema-0"):
        found = json.loads(schema.read_text())
        schema.write_text(json.dumps({**found, "options": {**found["options"], **_OPTIONS}}))
    for metadata in folder.rglob("*.metadata.json"):
        found = json.loads(metadata.read_text())
        more = ("write.py-location-provider.impl",) if metadata.parts[-3] == "t" else ()
        said = dict.fromkeys((*_PROPERTIES, *more), CLASS)
        metadata.write_text(json.dumps({**found, "properties": {**found["properties"], **said}}))
    (folder / "catalogs").mkdir()
    rest = {"type": "rest", "uri": "http://127.0.0.1:1"}
    memory = {"type": "in-memory", "warehouse": f"file://{folder}/x"}
    for number, key in enumerate(_PROPERTIES):
        (folder / "catalogs" / f"rest{number}.json").write_text(json.dumps({**rest, key: CLASS}))
        (folder / "catalogs" / f"memory{number}.json").write_text(json.dumps({**memory, key: CLASS}))
    (folder / "catalogs" / "iceberg.json").write_text(json.dumps({**memory, "py-io-impl": CLASS}))
    (folder / "catalogs" / "bare.json").write_text(json.dumps({"py-catalog-impl": CLASS}))
    (folder / "catalogs" / "plain.json").write_text(json.dumps(memory))
    configured = "".join(f"  {name}:\n    py-io-impl: {CLASS}\n" for name in ("iceberg", "plain"))
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n{configured}")
    bombs = (
        "plan.pickle",
        "snapshot/snapshot-2",
        "metadata",
        "schema/schema-1",
        "callback/commit/x",
        "consumer/consumer-x",
    )
    for place in (*(f"d.db/pickled/{name}" for name in bombs), "catalogs/pickled.json"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(pickle.dumps(_Bomb()))


class _Bomb:
    """Leaves the canary when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch ../canary",)


def test_nothing_of_a_prepared_warehouse_is_run(tmp_path: Path, hostile: Path) -> None:
    folder = tmp_path / "lake"
    prepare(folder)
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM)
    kept = sorted(path.stem for path in (folder / "catalogs").glob("*.json"))
    catalogs = [f"SHOW DATABASES IN {name}; SELECT * FROM {name}.db.t; CREATE DATABASE {name}.x" for name in kept]
    statements = [
        f"CREATE CATALOG c{number} WITH ('type' = 'rest', 'uri' = 'http://127.0.0.1:1', '{key}' = '{CLASS}')"
        for number, key in enumerate(_PROPERTIES)
    ]
    statements += [
        f"CREATE CATALOG i WITH ('py-catalog-impl' = '{CLASS}')",
        f"CREATE TABLE d.n (a INT) WITH ('commit.callbacks' = '{CLASS}')",
        f"ALTER TABLE d.plain SET TBLPROPERTIES ('tag.callbacks' = '{CLASS}')",
        f"CREATE TABLE iceberg.db.n (a INT) TBLPROPERTIES ('write.py-location-provider.impl' = '{CLASS}')",
    ]
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **{key: text for key, text in os.environ.items() if not key.startswith("PYICEBERG")},
        "PYTHONPATH": f"{hostile}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "HOME": str(home),
    }
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        input=";".join([_READS, *catalogs, *statements, _WRITES]),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "canary").exists()
    assert not (folder / "canary").exists()
    # The tables are read all the same.
    refused = [line for line in done.stdout.splitlines() if line.startswith("refused")]
    untouched = ("SELECT * FROM iceberg.db.t |", "d.keyed", "d.plain |", "iceberg.db.u")
    assert not [line for line in refused if any(name in line for name in untouched)]
    assert sum("CREATE CATALOG c" in line for line in refused) == len(_PROPERTIES)
