"""What a query reads."""

import pytest

from lakelet.errors import InvalidError
from lakelet.pipeline.sql_inputs import named_inputs, read_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("SELECT * FROM STREAM(orders)", ["STREAM orders"]),
        ("SELECT * FROM stream ( shop.orders ) AS o JOIN c USING (k)", ["STREAM shop.orders", "c"]),
        ("SELECT * FROM STREAM orders", ["STREAM orders"]),
        ("SELECT * FROM stream", ["stream"]),
        ("SELECT * FROM stream WHERE a", ["stream"]),
        ("SELECT orders FROM a, b x JOIN (SELECT * FROM c) ON true WHERE orders > 1", ["a", "b", "c"]),
        ("WITH a AS (SELECT * FROM b), c(x, y) AS (SELECT 1, 2) SELECT * FROM a JOIN c", ["b"]),
        ("SELECT extract(year FROM day) FROM `my orders`", ["my orders"]),
        ("SELECT * FROM explode(array(1)) AS t(x)", []),
        ("TABLE orders", ["orders"]),
        ("SELECT * FROM ice.shop.orders WHERE x IN (SELECT y FROM STREAM(z))", ["ice.shop.orders", "STREAM z"]),
        ("SELECT 'FROM x' -- FROM y\nFROM w", ["w"]),
        ("WITH a AS (SELECT * FROM STREAM(a)) SELECT * FROM a", ["STREAM a"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b", ["b"]),
        ("WITH RECURSIVE q AS (SELECT 1 UNION ALL SELECT * FROM q) SELECT * FROM q", []),
        ("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q", ["q"]),
        ("SELECT * FROM (VALUES 1, 2) AS v(x) JOIN shop.orders$snapshots s", ["shop.orders$snapshots"]),
    ],
)
def test_names_after_from_and_join(text: str, names: list[str]) -> None:
    assert [("STREAM " if one.streaming else "") + one.name for one in named_inputs(text)] == names
    for one in named_inputs(text):
        assert one.parts[-1] in text[one.start : one.end]


def test_arguments_of_python_steps() -> None:
    assert (read_of("STREAM( shop.orders )").argument, read_of("orders").streaming) == ("orders", False)
    assert read_of("STREAM(orders)", "new").argument == "new"
    with pytest.raises(InvalidError, match="that Python can have"):
        read_of("my orders")
