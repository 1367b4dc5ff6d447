"""Pipelines in YAML: what they define, and the line of every mistake."""

import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError, LakeletError, NotFoundError
from lakelet.pipeline import Graph, Pipeline, load_yaml, parse_pipeline
from lakelet.pipeline.definition import Action, FlowKind, SqlStep
from tests.tiers.examples import examples

SHOP = """\
name: shop
database: shop
parameters:
  raw: ./raw
  day: 2026-01-01
environments:
  prod: {warehouse: s3://bucket/lake, parameters: {raw: s3a://bucket/raw}, options: {s3.region: eu}}
sources:
  raw_orders:
    format: csv
    path: ${raw}
    schema: id BIGINT, amount DOUBLE
    options: {header: true, sep: no}
temporary_views:
  clean: {sql: "SELECT * FROM STREAM(raw_orders) WHERE id IS NOT NULL"}
tables:
  orders:
    source: clean
    primary_key: id
    expectations:
      positive: {condition: amount > 0, action: drop}
      named: id > 0
materialized_views:
  totals:
    sql: |
      SELECT '${day}' AS day,
             count(*) AS orders
      FROM orders
"""


def parsed(text: str, **how: object) -> Pipeline:
    return parse_pipeline(text, "/somewhere/shop.yaml", **how)  # type: ignore[arg-type]


def test_a_file_defines_a_pipeline() -> None:
    shop = parsed(SHOP)
    assert (shop.name, shop.database, shop.retries) == ("shop", "shop", 2)
    (source,) = shop.sources
    assert (source.path, source.options) == (("/somewhere/raw",), {"header": "true", "sep": "no"})
    orders, totals = shop.tables
    assert (orders.streaming, orders.primary_key, totals.streaming) == (True, ("id",), False)
    assert [(one.name, one.action, one.place.line) for one in orders.expectations] == [
        ("positive", Action.DROP, 21),
        ("named", Action.WARN, 22),
    ]
    assert [flow.kind for flow in shop.flows] == [FlowKind.APPEND, FlowKind.COMPLETE]
    step = shop.flows[1].step
    assert isinstance(step, SqlStep)
    assert step.text.startswith("SELECT '2026-01-01' AS day,\n")
    assert step.place.line == 26


def test_an_environment_replaces_settings_and_values_given_replace_both() -> None:
    assert parsed(SHOP, environment="prod").sources[0].path == ("s3a://bucket/raw",)
    prod = parsed(SHOP, environment="prod", parameters={"raw": "/other"})
    assert (prod.warehouse, prod.options) == ("s3://bucket/lake", {"s3.region": "eu"})
    assert prod.sources[0].path == ("/other",)
    with pytest.raises(NotFoundError, match="did you mean prod"):
        parsed(SHOP, environment="prd")
    with pytest.raises(InvalidError, match="no parameter 'rw'; did you mean raw"):
        parsed(SHOP, parameters={"rw": "1"})


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("primary_key", "primry_key", 19, "unknown field 'primry_key' of table 'orders'; did you mean primary_key"),
        ("materialized_views", "materialised_views", 23, "did you mean materialized_views"),
        ('"SELECT * FROM STREAM(raw_orders) WHERE id IS NOT NULL"', "SELECT id, amount FROM x", 15, "needs quotes"),
        ("${raw}", "${rw}", 11, "parameter 'rw' has no value; did you mean raw"),
        ("'${day}' AS day,\n             count(*)", "1,\n             '${dy}'", 27, "'dy' has no value"),
        ("action: drop", "action: dropp", 21, "action 'dropp' of expectation 'positive'"),
        ("  day: 2026-01-01", "  day:", 5, "give it with -p day="),
        ("name: shop", "name: ../up", None, "for a folder is called like it"),
        ("source: clean", "source: clean\n    sql: SELECT 1", 19, "one of sql, source and python"),
        ("source: clean", "source: [clean]", 18, "expected a text, found a list"),
        ("header: true", "header: !!python/object/apply:os.system [x]", 13, "expected plain values"),
        ("header: true", "<<: {a: b}", 13, "expected a name before the colon, found <<"),
        ("format: csv", "format: csv\n    format: json", 11, "'format' is there twice, first on line 10"),
        ("  totals:", "  ORDERS:", 24, "'shop.ORDERS' is defined twice"),
        ("source: clean", "source: clen", None, None),
        ("STREAM(raw_orders)", "raw_orders", 17, "STREAM(clean), but view 'clean' reads no stream"),
        ("source: clean", "sql: SELECT * FROM raw_orders", 18, "reads no stream: say STREAM(name)"),
        ("FROM orders", "FROM STREAM(orders)", 26, "materialized view 'totals' reads STREAM(orders)"),
        ("FROM orders", "FROM totals", 24, "a cycle: totals reads totals"),
        ("FROM orders", "FROM clean", 24, "reads clean, which is a stream"),
        ("FROM orders", "FROM 'orders", 26, "cannot be read"),
        ("tables:\n  orders:", "tables:\n  a.b.c:", 17, "table or database.table"),
        ("tables:\n  orders:", "tables:\n  a/b:", 17, "a/b"),
        ("raw_orders:\n", '"raw\\e[31m": {format: rate}\n  raw_orders:\n', 9, "can be printed"),
        ("  totals:", "  Pipeline_Events:", 24, "a run keeps the events of runs in a table of that name"),
        (
            "      named: id > 0\n",
            "      named: {condition: id > 0, action: quarantine}\n  orders_quarantine: {source: clean}\n",
            23,
            "rows of 'orders' that are set",
        ),
        (
            "name: shop\n",
            "name: shop\nspark: {spark.sql.ansi.enabled: false, spark.jars: x.jar}\n",
            2,
            "--conf spark.jars=…",
        ),
        ("name: shop\n", "name: shop\nspark: {spark.sql.extensions: evil.Evil}\n", 2, "spark.sql.extensions"),
        ("name: shop\n", "name: shop\noptions: {callbacks.allow: evil}\n", 2, "-o callbacks.allow=…"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int | None, words: str | None) -> None:
    assert SHOP.count(old) == 1
    if words is None:
        # Whether the warehouse or Spark has such a table is found out when the pipeline runs.
        Graph.of(parsed(SHOP.replace(old, new)))
        return
    with pytest.raises(InvalidError) as told:
        Graph.of(parsed(SHOP.replace(old, new)))
    assert str(told.value).startswith("/somewhere/shop.yaml" + (f":{line}: " if line else ": ")), told.value
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("spark.sql.shuffle.partitions", True),
        ("spark.sql.session.timeZone", True),
        ("spark.executor.memory", True),
        ("spark.hadoop.fs.s3a.endpoint", True),
        ("spark.sql.streaming.checkpointFileManagerClass", False),
        ("spark.sql.streaming.stateStore.providerClass", False),
        ("spark.sql.catalog.mine", False),
        ("spark.executor.extraJavaOptions", False),
        ("spark.pyspark.python", False),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.plugins", False),
        ("spark.master", False),
    ],
)
def test_a_file_sets_no_setting_that_loads_code(name: str, allowed: bool) -> None:
    text = SHOP.replace("name: shop\n", f"name: shop\nspark: {{{name}: x}}\n")
    if allowed:
        assert parsed(text).spark == {name: "x"}
    else:
        with pytest.raises(InvalidError, match=rf"shop\.yaml:2: spark setting '{name}'"):
            parsed(text)


@pytest.mark.parametrize("where", ["name: shop\noptions:", "name: shop\nsinks: {s: {format: lakelet-iceberg, options:"])
def test_a_file_names_no_class_of_a_catalog(where: str) -> None:
    pytest.importorskip("pyiceberg")
    close = "" if where.endswith("\noptions:") else ", source: raw_orders}}"
    for good in ("catalog.ice.uri: http://a", "catalog.ice.token: x", "catalog.type: rest", "s3.region: eu"):
        parsed(SHOP.replace("name: shop", f"{where} {{{good}}}{close}", 1))
    for bad in ("catalog.ice.py-io-impl", "catalog.py-catalog-impl", "Catalog.ice.Auth.Impl", "catalog.ice.token-impl"):
        with pytest.raises(InvalidError, match=rf":2: option '{bad}' is none that a pipeline file may set"):
            parsed(SHOP.replace("name: shop", f"{where} {{{bad}: os.system}}{close}", 1))


def test_values_that_are_used_again_and_again_are_bounded() -> None:
    many = "${raw}" * 10_000
    with pytest.raises(InvalidError, match=r"shop\.yaml:11: parameter 'raw': the values of parameters make more than"):
        parsed(SHOP.replace("path: ${raw}", f"path: {many}"), parameters={"raw": "x" * 10_000})


def test_a_sink_sets_nothing_aside() -> None:
    more = SHOP + "sinks:\n  out:\n    format: json\n    source: orders\n    expectations:\n"
    parsed(more + "      a: amount > 0\n")
    with pytest.raises(InvalidError, match=r":34: sink 'out': quarantine is for tables"):
        parsed(more + "      a: {condition: amount > 0, action: quarantine}\n")


def test_two_flows_with_one_name_are_refused() -> None:
    more = SHOP + "append_flows:\n  Orders: {target: orders, source: raw_orders}\n"
    with pytest.raises(InvalidError, match=r"shop\.yaml:30: two flows are called 'Orders', the first at .*:17"):
        parsed(more)


def test_a_target_that_is_not_there_is_told_with_the_nearest() -> None:
    more = SHOP + "append_flows:\n  more: {target: order, source: raw_orders}\n"
    with pytest.raises(InvalidError, match=r":30: flow 'more': there is no table or sink 'order'; did you mean orders"):
        parsed(more)


def test_a_file_that_is_not_there(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(NotFoundError, match="there is no pipeline file"):
        load_yaml(os.path.join(tmp_path, "none.yaml"))
    wrong = os.path.join(tmp_path, "wrong.yaml")
    with open(wrong, "wb") as file:
        file.write(b"\xff\xfe\x00")
    with pytest.raises(InvalidError, match="cannot be read"):
        load_yaml(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n---\n",
        "[" * 5_000,
        "a: &a [*a]",
        "{" * 300 + "}" * 300,
        "a: "
        + "&x0 [1,1,1,1,1,1,1,1,1]\n"
        + "\n".join(f"b{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 9)),
        "name: \x00",
        "!!python/name:os.system a: b",
        "? [a]\n: b",
        "name: shop\ntables: {t: {sql: 'SELECT'}, u: {}}",
    ],
)
def test_hostile_files_end_in_an_error(text: str) -> None:
    with pytest.raises(InvalidError):
        parsed(text)


_LINES = st.sampled_from(
    [*SHOP.splitlines(), "tables:", "  x: {sql: SELECT 1}", "- a", "  - b", "sinks: {s: {format: x}}", "'"]
)
_EDITED = st.tuples(st.integers(0, len(SHOP)), st.integers(0, 12), st.text(max_size=4)).map(
    lambda edit: SHOP[: edit[0]] + edit[2] + SHOP[edit[0] + edit[1] :]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(_EDITED, st.lists(_LINES, max_size=30).map("\n".join), st.text(max_size=60)))
def test_any_text_is_a_pipeline_or_an_error_of_ours(text: str) -> None:
    with suppress(LakeletError):
        Graph.of(parsed(text))
