"""`lakelet demo`: the main job on made-up orders, step by step, with readable results.

The load and the upsert run on Spark unless asked otherwise (`demo_engines`), the other steps in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelet.catalog import connect
from lakelet.catalog.lake import Lake
from lakelet.cli.demo.demo_engines import Engine, open_engine
from lakelet.cli.demo.demo_fold import show_fold
from lakelet.cli.demo.demo_pipeline import show_pipeline
from lakelet.cli.demo.demo_service import show_service
from lakelet.cli.demo.demo_stream import show_stream
from lakelet.cli.demo.demo_writer import show_cache, show_writer
from lakelet.cli.maintenance import compaction_bar
from lakelet.cli.output.output import Output
from lakelet.clock import SystemClock
from lakelet.ids import seeded_numbers
from lakelet.table import Table

DATABASE = "lakelet_demo"
_DAYS = 7
_FIRST_DAY = 20_454  # 2026-01-01
_COUNTRIES = np.array(["DE", "FR", "JP", "US", "BR"])
_BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class _Demo:
    """The context of every step: the lake, the table, the output, the number of initial orders, and the engine that writes."""

    lake: Lake
    orders: Table
    output: Output
    rows: int
    engine: Engine


def run_demo(warehouse: str, options: Mapping[str, str], output: Output, *, rows: int, engine: str) -> None:
    """Ingest, upsert, compact, query, get, overwrite, delete, evolve, travel back, read changes, merge, fold, insert into
    Iceberg, put rows through a writer that is killed, write and follow a stream, run a pipeline, serve a table over HTTP,
    check."""
    with open_engine(engine, warehouse, options, output) as opened:
        _run(warehouse, options, output, rows, opened)


def _run(warehouse: str, options: Mapping[str, str], output: Output, rows: int, engine: Engine) -> None:
    lake = connect(warehouse, dict(options))
    output.note(f"[bold]Lakelet demo[/bold] in {lake.location}, database {DATABASE}\n")
    lake.drop_database(DATABASE, cascade=True, if_exists=True)
    lake.create_database(DATABASE)
    orders = lake.create_table(
        f"{DATABASE}.orders",
        [
            ("order_id", "BIGINT NOT NULL"),
            ("day", "DATE NOT NULL"),
            ("country", "STRING"),
            ("amount", "DECIMAL(12, 2)"),
            ("customer", "ROW<name STRING, vip BOOLEAN>"),
        ],
        primary_key=["order_id", "day"],
        partitioned_by=["day"],
        options={"bucket": "2"},
        comment="made-up orders",
    )
    demo = _Demo(lake, orders, output, rows, engine)
    steps = (
        *(_ingest, _upsert, _compact, _query, _get, _overwrite, _delete, _evolve, _travel, _changes),
        *(_merge, _fold, _iceberg, _writer, _stream, _pipeline, _service, _check),
    )
    for number, step in enumerate(steps, 1):
        started = SystemClock().monotonic()
        title = step(demo, number)
        output.note(
            f"   [dim]step {number} of {len(steps)}, {title}: {SystemClock().monotonic() - started:.2f} s[/dim]\n"
        )
    output.note(f"More: lakelet history {orders.name}, lakelet files {orders.name} --tree, lakelet shell")
    output.note(f"[green]Done.[/green] The files are Apache Paimon's format: {orders.location}")


def _ingest(demo: _Demo, number: int) -> str:
    demo.output.note(f"[bold]{number}. Ingest[/bold] {demo.rows:,} orders in one atomic commit")
    snapshot = demo.engine.load(demo.orders, _orders(demo.rows))
    files = demo.orders.files()
    assert snapshot is not None
    shown = {"snapshot": snapshot.id, "records": snapshot.total_record_count, "files": len(files)}
    demo.output.values("committed", shown)
    return "ingest"


def _upsert(demo: _Demo, number: int) -> str:
    demo.output.note(f"[bold]{number}. Upsert[/bold]: orders that are there change their amount, new ones come in")
    orders, up_to, more = demo.orders, max(demo.rows // 10, 1), max(demo.rows // 20, 1)
    before = orders.scan().count()
    changed = orders.scan(where=f"order_id <= {up_to}").count()
    demo.engine.double_amounts(orders, up_to, _orders(more, first=demo.rows + 1))
    shown = {"changed": changed, "new": more, "before": before, "after": orders.scan().count()}
    demo.output.values("upserted", shown)
    return "upsert"


def _compact(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Compact[/bold]: files with rows of the same keys become one; readers go on meanwhile")
    before = orders.files()
    with compaction_bar(output) as progress:
        made = orders.compact(full=True, progress=progress)
    after = orders.files()
    shown = {"files before": len(before), "files after": len(after), "snapshot": made.id if made else None}
    output.values("compacted", shown)
    return "compact"


def _get(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Get[/bold] rows by key, through key ranges and cached blocks")
    keys = orders.scan(columns=["order_id", "day"], where="order_id <= 3").to_arrow()
    orders.get_many(keys)
    started = SystemClock().monotonic()
    found = orders.get(keys.to_pylist()[0])
    milliseconds = (SystemClock().monotonic() - started) * 1000
    assert found is not None
    output.rows("found", tuple(found), [tuple(found.values())])
    output.values("get", {"milliseconds, warm": f"{milliseconds:.1f}"})
    return "get"


def _query(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Query[/bold] with DuckDB; a filter on the partition reads one day's files only")
    scan = orders.scan(where="day = DATE '2026-01-03'")
    plan = scan.plan()
    relation = (
        scan.to_duckdb().aggregate("country, count(*) AS orders, sum(amount) AS total", "country").order("country")
    )
    output.rows("2026-01-03", ("country", "orders", "total"), relation.fetchall())
    output.values("pruning", {"files read": plan.files, "of": plan.files_total})
    return "query"


def _overwrite(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Overwrite[/bold] one partition; the other days stay as they are")
    day = next(_orders(max(demo.rows // 20, 1), only_day=2, first=5_000_001))
    before = orders.scan(where="day = DATE '2026-01-03'").count()
    orders.write(day, mode="overwrite", partition={"day": "2026-01-03"})
    after = orders.scan(where="day = DATE '2026-01-03'").count()
    output.values("2026-01-03", {"rows before": before, "rows after": after, "rows in all": orders.scan().count()})
    return "overwrite"


def _delete(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Delete[/bold] by condition and by key; no file is rewritten")
    before = orders.scan().count()
    orders.delete(where="country = 'BR' AND amount < 100")
    orders.delete(orders.scan(columns=["order_id", "day"], where="order_id = 2").to_arrow())
    output.values("deleted", {"rows": before - orders.scan().count()})
    return "delete"


def _evolve(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Evolve[/bold] the schema; no file is rewritten")
    orders.add_column("note", "STRING", default="none", comment="added later", after="amount")
    orders.rename_column("customer.name", "full_name")
    row = {"order_id": 9_999_999, "day": np.datetime64("2026-01-07").item(), "country": "DE"}
    orders.write([row], missing="default")
    rows = (
        orders.scan(columns=["order_id", "note", "customer"], where="order_id IN (1, 9999999)").to_arrow().to_pylist()
    )
    output.rows("old and new rows", ("order_id", "note", "customer"), [tuple(row.values()) for row in rows])
    return "evolve"


def _travel(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Time travel[/bold]: every commit can be read again, in the schema it had")
    rows = [(s.id, s.commit_kind.value, orders.scan(version=s.id).count()) for s in orders.snapshots()]
    output.rows("versions", ("version", "made by", "rows"), rows)
    return "time travel"


def _changes(demo: _Demo, number: int) -> str:
    orders, output = demo.orders, demo.output
    output.note(f"[bold]{number}. Changes[/bold] between two versions, by key; here what the upsert did")
    columns = ["_row_kind", "order_id", "amount"]
    changes = orders.changes(1, 2).select(columns)
    first = changes.sort_by([("order_id", "ascending"), ("_row_kind", "descending")]).slice(0, 4).to_pylist()
    output.rows("the first of (1, 2]", tuple(columns), [tuple(row.values()) for row in first])
    kinds = changes.group_by("_row_kind").aggregate([([], "count_all")]).sort_by("_row_kind").to_pylist()
    output.values("all of them", {row["_row_kind"]: row["count_all"] for row in kinds})
    return "changes"


def _merge(demo: _Demo, number: int) -> str:
    output, orders, totals = demo.output, demo.orders.name, f"{DATABASE}.totals"
    output.note(
        f"[bold]{number}. Merge[/bold] in SQL: totals of the first version, updated from a temporary table; a view of them"
    )
    summed = "SELECT country, CAST(sum(amount) AS DECIMAL(20, 2)) AS amount FROM"
    demo.lake.sql(
        f"CREATE TABLE {totals} (PRIMARY KEY (country)) AS {summed} {orders} FOR VERSION AS OF 1 GROUP BY ALL"
    )
    demo.lake.sql(f"CREATE OR REPLACE TEMP TABLE newest AS {summed} {orders} GROUP BY ALL")
    changed = demo.lake.sql(
        f"MERGE INTO {totals} t USING newest s ON t.country = s.country "
        "WHEN MATCHED AND t.amount <> s.amount THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.country, s.amount) WHEN NOT MATCHED BY SOURCE THEN DELETE "
        "RETURNING merge_action, country, amount"
    )
    output.rows("what the merge did", ("action", "country", "amount"), sorted(changed.rows(), key=str))
    demo.lake.sql(f"CREATE VIEW {DATABASE}.best AS FROM {totals} ORDER BY amount DESC LIMIT 1")
    output.rows("the view", ("country", "amount"), demo.lake.sql(f"FROM {DATABASE}.best").rows())
    return "merge"


def _fold(demo: _Demo, number: int) -> str:
    demo.output.note(
        f"[bold]{number}. Fold[/bold]: a table that adds up what is written, with a changelog, published as Iceberg"
    )
    show_fold(demo.lake, DATABASE, demo.output)
    return "fold"


def _writer(demo: _Demo, number: int) -> str:
    demo.output.note(
        f"[bold]{number}. Writer[/bold]: rows one at a time, each durable at once; a killed process loses none"
    )
    show_writer(demo.lake, DATABASE, demo.output)
    return "writer"


def _stream(demo: _Demo, number: int) -> str:
    demo.output.note(
        f"[bold]{number}. Stream[/bold]: visits arrive and go into a table, each once; what changes comes out as a stream"
    )
    show_stream(demo.engine.stream_runner, demo.lake, DATABASE, demo.output)
    return "stream"


def _pipeline(demo: _Demo, number: int) -> str:
    demo.output.note(
        f"[bold]{number}. Pipeline[/bold]: files become a streaming table, and a view of it; a second run takes what is new"
    )
    if demo.engine.pipeline_runner is None:
        demo.output.note("   left out: pipelines run on Spark")
    else:
        show_pipeline(demo.engine.pipeline_runner, DATABASE, demo.output)
    return "pipeline"


def _service(demo: _Demo, number: int) -> str:
    demo.output.note(
        f"[bold]{number}. Serve[/bold] a table over HTTP: rows are durable when they are answered, and queried at once"
    )
    show_service(demo.lake, demo.output)
    return "serve"


def _check(demo: _Demo, number: int) -> str:
    demo.output.note(f"[bold]{number}. Check[/bold]: every file is there, can be read and agrees with its metadata")
    found = demo.orders.check()
    demo.output.values(
        "checked", {"versions": found.versions, "files": found.data_files, "damaged": len(found.damages)}
    )
    show_cache(demo.lake, demo.output)
    return "check"


def _iceberg(demo: _Demo, number: int) -> str:
    lake, output, name = demo.lake, demo.output, f"iceberg.{DATABASE}.orders"
    output.note(
        f"[bold]{number}. Iceberg[/bold]: big orders into an Iceberg table, each row into the partition it belongs to"
    )
    if find_spec("pyiceberg") is None or not lake.catalogs.names():
        output.note("   left out: it takes pip install 'lakelet[iceberg]', and a catalog (docs/iceberg.md)")
        return "iceberg"
    lake.sql(f"CREATE DATABASE IF NOT EXISTS iceberg.{DATABASE}")
    lake.sql(f"DROP TABLE IF EXISTS {name}")
    lake.sql(
        f"CREATE TABLE {name} (order_id BIGINT NOT NULL, day DATE, country STRING, amount DECIMAL(12, 2)) USING iceberg "
        "PARTITIONED BY (days(day), bucket(4, order_id))"
    )
    demo.engine.insert_iceberg(lake, demo.orders, f"{DATABASE}.orders")
    made = lake.sql(f"SELECT count(*) AS files, sum(record_count) AS rows FROM {name}$files").to_arrow().to_pylist()[0]
    output.values("one snapshot", made)
    joined = lake.sql(
        f"SELECT big.day, count(*) AS big_orders, round(100.0 * sum(big.amount) / any_value(whole.amount), 1) AS share "
        f"FROM {name} AS big JOIN (SELECT day, sum(amount) AS amount FROM {DATABASE}.orders GROUP BY day) AS whole "
        "ON whole.day = big.day GROUP BY big.day ORDER BY big.day LIMIT 3"
    ).to_arrow()
    output.rows(
        "joined with the other table", tuple(joined.column_names), [tuple(row.values()) for row in joined.to_pylist()]
    )
    return "iceberg"


def _orders(rows: int, only_day: int | None = None, first: int = 1) -> Iterator[pa.RecordBatch]:
    """Seeded orders, batch by batch, numbered from `first` on."""
    random = seeded_numbers(7)
    for start in range(0, rows, _BATCH_ROWS):
        count = min(_BATCH_ROWS, rows - start)
        days = np.full(count, only_day) if only_day is not None else random.integers(0, _DAYS, count)
        cents = random.integers(100, 100_000, count)
        names = np.char.add("customer ", random.integers(1, 5_000, count).astype(str))
        customer = pa.StructArray.from_arrays(
            [pa.array(names), pa.array(random.random(count) < 0.1)], names=["name", "vip"]
        )
        yield pa.record_batch(
            {
                "order_id": pa.array(np.arange(first + start, first + start + count)),
                "day": pa.array((_FIRST_DAY + days).astype(np.int32)).cast(pa.date32()),
                "country": pa.array(_COUNTRIES[random.integers(0, len(_COUNTRIES), count)]),
                "amount": pc.multiply(pa.array(cents).cast(pa.decimal128(19, 0)), Decimal("0.01")).cast(
                    pa.decimal128(12, 2)
                ),
                "customer": customer,
            }
        )
