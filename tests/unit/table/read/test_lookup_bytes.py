"""`lookup.get_bytes`: bytes of one column by the bytes of the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet import InvalidError, Lake
from lakelet.format.sst.point_loops import row_loop, text_loop


@pytest.fixture(autouse=True, params=["compiled", "decoded"])
def _way_to_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are found by compiled loops, and where there are none in decoded blocks."""
    for loop in (row_loop, text_loop):
        if request.param == "compiled":
            loop.load_if_enabled()
        else:
            monkeypatch.setattr(loop, "enabled", False)
            monkeypatch.setattr(loop, "compiled", None)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("d")
    return lake


@pytest.mark.parametrize("kind", ["STRING", "BYTES"])
@pytest.mark.parametrize("bucket", ["1", "3", "-1"])
def test_bytes_by_bytes(lake: Lake, kind: str, bucket: str) -> None:
    columns = [("k", f"{kind} NOT NULL"), ("v", kind)]
    table = lake.create_table("d.t", columns, primary_key=["k"], options={"bucket": bucket})
    keys = ["", "a", "größe", "x\x00", *map(str, range(50))]

    def value(text: str | None) -> Any:
        return text if text is None or kind == "STRING" else text.encode()

    table.write([{"k": value(key), "v": value(f"<{key}>")} for key in keys])
    table.write([{"k": value("a"), "v": None}, {"k": value("1"), "v": value("newer")}])
    table.delete([{"k": value("2")}])
    with table.lookup() as lookup:
        for _ in range(2):
            for key in [*keys, "absent"]:
                row = table.get({"k": value(key)})
                expected = None if row is None or row["v"] is None else row["v"]
                found = lookup.get_bytes(key.encode())
                assert found == (expected.encode() if isinstance(expected, str) else expected)
            assert lookup.get_bytes(b"1") == b"newer"
            assert lookup.get_bytes(b"1", column="k") == b"1"
            assert lookup.get_bytes(b"\xff\xfe") is None
        table.add_column("w", "STRING")
        table.write([{"k": value("1"), "v": value("v"), "w": "w"}])
        assert lookup.get_bytes(b"1") == b"newer"
        lookup.refresh()
        assert (lookup.get_bytes(b"1", "w"), lookup.get_bytes(b"3", "w"), lookup.get_bytes(b"3", "v")) == (
            b"w",
            None,
            b"<3>",
        )
        with pytest.raises(InvalidError, match="the name of a column, there are v, w"):
            lookup.get_bytes(b"1")


def test_what_bytes_are_refused(lake: Lake) -> None:
    columns = [("k", "STRING NOT NULL"), ("n", "INT")]
    table = lake.create_table("d.s", columns, primary_key=["k"], options={"bucket": "1"})
    with table.lookup() as lookup:
        with pytest.raises(InvalidError, match="'n' is INT"):
            lookup.get_bytes(b"x")
        with pytest.raises(InvalidError, match="expected bytes, found str"):
            lookup.get_bytes("x", "k")  # type: ignore[arg-type]
        assert lookup.get_bytes(b"x", "k") is None
        with pytest.raises(lakelet.LakeletError, match="nothing"):
            lookup.get_bytes(b"x", "nothing")
    other = lake.create_table(
        "d.t", [("id", "BIGINT NOT NULL"), ("v", "INT")], primary_key=["id"], options={"bucket": "1"}
    )
    with other.lookup() as lookup, pytest.raises(InvalidError, match="found id BIGINT"):
        lookup.get_bytes(b"x")
    lookup.close()
    with pytest.raises(InvalidError, match="closed"):
        lookup.get_bytes(b"x")
