"""The names of a lake's tables in the SQL text for Spark."""

from __future__ import annotations

import pytest

from lakelet.errors import InvalidError
from lakelet.spark.sql.aliases import aliases, qualifiers
from lakelet.sql.lexer.spark_references import references
from lakelet.sql.lexer.spark_words import words_of


def called(text: str, lake: str = "shop two") -> dict[str, str]:
    """The names by table, where only some databases are the lake's."""
    words = words_of(text)
    known = [one for one in references(words) if one.database.lower() in lake.split() and one.after != "INTO"]
    return {".".join(key): name for key, name in aliases(words, known).items()}


def test_columns_named_with_their_database() -> None:
    text = "SELECT shop.orders.id, SHOP.Orders.*, x.shop.orders.id, shop.other.id FROM shop.orders"
    words = words_of(text)
    found = qualifiers(words, references(words))
    assert [(text[one.start : one.end], one.key) for one in found] == [
        ("shop.orders", ("shop", "orders")),
        ("SHOP.Orders", ("shop", "orders")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, orders.dt, shop.orders.amount FROM shop.orders",
        "SELECT o.id FROM shop.orders o JOIN shop.orders p ON o.id = p.id",
        "SELECT shop.orders.id FROM shop.orders VERSION AS OF 1",
        "INSERT INTO two.orders SELECT shop.orders.id, orders.v FROM shop.orders",
    ],
)
def test_a_table_keeps_its_name(text: str) -> None:
    assert called(text) == {"shop.orders": "orders"}


def test_tables_of_one_name_keep_it_where_no_column_has_a_database() -> None:
    found = called("SELECT orders.id, (SELECT max(orders.v) FROM two.orders) FROM shop.orders")
    assert found == {"shop.orders": "orders", "two.orders": "orders"}


def test_tables_of_one_name_are_told_apart() -> None:
    text = "SELECT Shop.orders.id, two.orders.v FROM shop.Orders JOIN two.orders ON shop.orders.id = two.orders.id"
    assert called(text) == {"shop.orders": "shop.orders", "two.orders": "two.orders"}
    only_one = "SELECT shop.orders.id, v FROM shop.orders JOIN two.orders USING (id)"
    assert called(only_one) == {"shop.orders": "shop.orders", "two.orders": "orders"}


@pytest.mark.parametrize(
    "tables",
    [
        "sparks.orders WHERE sparks.orders.id = shop.orders.id",
        "orders WHERE v = shop.orders.id",
        "two.items AS orders WHERE v = shop.orders.id",
        "spark_catalog.sparks.orders WHERE v = shop.orders.id",
    ],
)
def test_what_is_not_of_the_lake_may_have_the_name_too(tables: str) -> None:
    text = f"SELECT 1 FROM shop.orders WHERE EXISTS (SELECT 1 FROM {tables})"
    assert called(text)["shop.orders"] == "shop.orders"


@pytest.mark.parametrize("other", ["two.orders", "orders"])
def test_a_name_that_may_be_either_is_refused(other: str) -> None:
    with pytest.raises(InvalidError, match=r"'orders' may mean shop.orders or something else .* give both an alias"):
        called(f"SELECT 1 FROM shop.orders WHERE EXISTS (SELECT 1 FROM {other} WHERE orders.id = shop.orders.id)")


def test_columns_named_with_catalog_and_database() -> None:
    text = "SELECT ice.shop.orders.id, shop.orders.id, orders.v FROM ice.shop.orders JOIN two.items"
    words = words_of(text)
    found = qualifiers(words, references(words))
    assert [(text[one.start : one.end], one.key) for one in found] == [("ice.shop.orders", ("ice", "shop", "orders"))]
    both = "SELECT ice.shop.orders.id, shop.orders.id FROM ice.shop.orders JOIN shop.orders USING (id)"
    assert called(both) == {"ice.shop.orders": "ice.shop.orders", "shop.orders": "shop.orders"}
