"""Logs that cannot be replayed as they are: damage, and schemas that were replaced, are told and can be set aside."""

from pathlib import Path

import pytest

from lakelet.errors import CorruptionError
from lakelet.realtime.open import recover_table
from lakelet.realtime.wal.recovery import RecoveredLog
from tests.unit.realtime.written_table import WrittenTable, kill


@pytest.fixture
def written(tmp_path: Path) -> WrittenTable:
    return WrittenTable(tmp_path)


def recovered(written: WrittenTable, *, dry_run: bool = False) -> list[RecoveredLog]:
    return recover_table(written.table.home, written.logs, dry_run=dry_run, set_aside=True)


def left_over(written: WrittenTable, *rounds: list[int]) -> list[Path]:
    """Logs of a writer that died with several memtables, the newest with the last rows."""
    writer = written.writer()
    writer._worker.stop()
    for place, numbers in enumerate(rounds):
        for number in numbers:
            writer.put({"id": number, "v": f"{place}", "x": None})
        if place < len(rounds) - 1:
            writer._log.seal()
    kill(writer)
    return sorted(written.log_folder().glob("wal-*.log"))


def flip(path: Path, place: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    return bytes(data)


def test_a_damaged_log_says_how_to_go_on(written: WrittenTable) -> None:
    (log,) = left_over(written, [1, 2])
    data = flip(log, -20)
    with pytest.raises(CorruptionError, match=r"the record at byte .* `lakelet recover --set-aside` commits"):
        written.writer()
    assert log.read_bytes() == data
    assert written.table.latest_snapshot() is None


def test_rows_before_the_damage_are_committed_and_the_log_is_kept(written: WrittenTable) -> None:
    first, second, third = left_over(written, [1, 2], [3, 4, 5], [6, 1])
    data = flip(second, -20)
    (_, told, _) = recovered(written, dry_run=True)
    assert (told.outcome, told.records, told.path) == ("to set aside", 2, str(second))
    assert 0 < told.damaged_bytes < len(data)
    assert written.table.latest_snapshot() is None
    assert sorted(written.log_folder().glob("wal-*")) == [first, second, third]
    found = recovered(written)
    assert [one.outcome for one in found] == ["committed", "set aside", "committed"]
    assert Path(found[1].path).read_bytes() == data
    assert found[1].path == f"{second}.damaged"
    assert written.rows() == [(1, "2", None), (2, "0", None), (3, "1", None), (4, "1", None), (6, "2", None)]
    identifiers = [one.commit_identifier for one in written.table.snapshots()]
    assert identifiers == [1, 2, 3]
    with written.writer() as writer:
        assert [one.outcome for one in writer.recovered] == ["empty"]
        assert writer.status().memtables[0].sequence_number == 5


@pytest.mark.parametrize("place", [-20, 1, 30], ids=["row", "magic", "header"])
def test_numbers_go_on_behind_the_newest_log(written: WrittenTable, place: int) -> None:
    left_over(written, [1])
    written.writer().close()
    (log,) = left_over(written, [2, 3])
    flip(log, place)
    (told,) = recovered(written)
    assert told.outcome == "set aside"
    assert written.rows() == [(1, "0", None)] + ([(2, "0", None)] if place == -20 else [])
    with written.writer() as writer:
        writer.put({"id": 9, "v": "later", "x": None})
    assert (9, "later", None) in written.rows()
    keys = [(one.commit_user, one.commit_identifier) for one in written.table.snapshots()]
    assert len(set(keys)) == len(keys)


def test_a_crash_before_the_log_is_renamed_commits_nothing_twice(
    written: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log,) = left_over(written, [1, 2])
    flip(log, -20)
    with monkeypatch.context() as patch:
        patch.setattr("lakelet.realtime.wal.wal_folder.WalFolder.set_aside", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recovered(written)
    assert [one.outcome for one in recovered(written)] == ["set aside", "empty"]
    assert written.rows() == [(1, "0", None)]
    assert len(written.table.snapshots()) == 1


def test_a_schema_of_the_same_id_with_other_columns_is_told(written: WrittenTable) -> None:
    """As after a branch was fast-forwarded over the schema that the rows were put with."""
    left_over(written, [1])
    (schema,) = (written.folder / "warehouse").rglob("schema-0")
    text = schema.read_text()
    schema.write_text(text.replace('"name" : "v"', '"name" : "w"').replace('"name": "v"', '"name": "w"'))
    assert schema.read_text() != text
    with pytest.raises(CorruptionError, match="with other columns"):
        written.writer()
    (told,) = recovered(written)
    assert (told.outcome, told.records) == ("set aside", 0)
    assert written.table.latest_snapshot() is None
    schema.write_text(text)
