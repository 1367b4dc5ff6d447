from collections.abc import Sequence

import pytest

from lakelet.cli.shell.completion import suggest


class Shop:
    """Names as a lake would give them."""

    database = "shop"

    def databases(self) -> Sequence[str]:
        return ["default", "shop"]

    def tables(self, database: str) -> Sequence[str]:
        return {"shop": ["orders", "customers"], "default": ["t"]}.get(database, [])

    def columns(self, parts: Sequence[str]) -> Sequence[str]:
        known = {"orders": ["order_id", "amount"], "customers": ["customer_id", "name"]}
        return known.get(parts[-1], [])

    def procedures(self) -> Sequence[str]:
        return ["sys.compact(", "sys.create_tag("]

    def system_tables(self) -> Sequence[str]:
        return ["files", "snapshots"]

    def backslashes(self) -> Sequence[str]:
        return ["\\d", "\\dt", "\\timing"]


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("SELECT * FROM ", ["orders", "customers", "default.", "shop."]),
        ("SELECT * FROM or", ["orders"]),
        ("SELECT * FROM shop.", ["shop.orders", "shop.customers"]),
        ("SELECT * FROM shop.orders JOIN cus", ["customers"]),
        ("SELECT * FROM orders, cus", ["customers"]),
        ("SELECT * FROM orders$", ["orders$files", "orders$snapshots"]),
        ("SELECT * FROM shop.orders$sn", ["shop.orders$snapshots"]),
        ("INSERT INTO d", ["default."]),
        ("USE s", ["shop"]),
        ("CALL sys.co", ["sys.compact("]),
        ("SELECT * FROM shop.orders WHERE am", ["amount"]),
        ("SELECT * FROM orders o WHERE o.", ["o.order_id", "o.amount"]),
        ("SELECT * FROM orders AS o JOIN customers c ON o.order_id = c.n", ["c.name"]),
        ("UPDATE orders SET am", ["amount"]),
        ("SELECT 1; selec", ["select"]),
        ("SELEC", ["SELECT"]),
        ("\\d", ["\\d", "\\dt"]),
        ("\\d or", ["orders"]),
        ("\\c sh", ["shop"]),
        ("\\dt d", ["default"]),
        ("SELECT 'se", []),
        ("SELECT 1 /* se", []),
        ("SELECT * FROM nowhere.", []),
    ],
)
def test_what_may_stand_at_the_cursor(before: str, texts: list[str]) -> None:
    found = suggest(before, Shop())
    assert list(found.texts) == texts


def test_columns_of_tables_behind_the_cursor() -> None:
    assert suggest("SELECT am", Shop(), " FROM shop.orders; SELECT 1").texts == ("amount",)
    assert suggest("SELECT am", Shop(), "; SELECT * FROM shop.orders").texts == ()


def test_what_is_replaced() -> None:
    assert suggest("SELECT * FROM shop.or", Shop()).length == len("shop.or")
    assert suggest("SELECT * FROM ", Shop()).length == 0
