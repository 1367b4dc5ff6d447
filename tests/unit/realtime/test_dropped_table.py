"""A writer whose table is dropped keeps its rows in the log, and takes no others that could not be committed either."""

import os
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import UnavailableError
from tests.unit.realtime.written_table import COLUMNS, WrittenTable


def refused(call: object) -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        call()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize("again", [False, True])
def test_rows_for_a_table_that_was_dropped_are_refused_once_that_is_known(tmp_path: Path, again: bool) -> None:
    written = WrittenTable(tmp_path)
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    writer = written.writer()
    writer.put({"id": 1, "v": "kept", "x": None})
    lake.drop_table("d.t")
    if again:
        lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    refused(writer.flush)
    for put in (
        lambda: writer.put({"id": 2, "v": "lost", "x": None}),
        lambda: writer.put_many([{"id": 2, "v": "lost", "x": None}]),
        lambda: writer.put_together([{"id": 2, "v": "lost", "x": None}]),
    ):
        error = refused(put)
        assert error.nothing_done
        assert ("created again" if again else "dropped") in str(error)
    assert writer.status().memtables[0].rows == 1
    refused(writer.close)
    (log,) = [one for one in os.listdir(written.log_folder()) if one.endswith("-1.log")]
    assert log
    if again:
        assert written.rows() == []


def test_rows_are_taken_again_once_the_table_is_back(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    folder = tmp_path / "warehouse" / "d.db" / "t"
    with written.writer() as writer:
        writer.put({"id": 1, "v": "a", "x": None})
        folder.rename(tmp_path / "away")
        refused(writer.flush)
        refused(lambda: writer.put({"id": 2, "v": "b", "x": None}))
        (tmp_path / "away").rename(folder)
        writer.flush()
        writer.put({"id": 2, "v": "b", "x": None})
    assert written.rows() == [(1, "a", None), (2, "b", None)]
