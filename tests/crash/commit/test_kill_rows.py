"""A row writer, really killed: the short form. The long one is tests/soak/test_kill_rows_soak.py."""

from pathlib import Path

from tests.crash.killing_rows import kill_rows_and_check


def test_a_killed_row_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    kill_rows_and_check(tmp_path, rounds=10, seed=20261118)
