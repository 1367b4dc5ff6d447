"""Options of row writers: what they take."""

import pytest

from lakelet.errors import InvalidError
from lakelet.options import (
    MEMTABLE_FLUSH_THRESHOLD,
    MEMTABLE_MAX_NUMBER,
    MEMTABLE_SIZE,
    WAL_SYNC,
    WAL_SYNC_INTERVAL,
    TableOptions,
    check_options,
)


def test_the_defaults_are_those_of_the_design() -> None:
    options = TableOptions({})
    assert (options.get(MEMTABLE_SIZE), options.get(MEMTABLE_FLUSH_THRESHOLD)) == (64 << 20, 0.8)
    assert (options.get(MEMTABLE_MAX_NUMBER), options.get(WAL_SYNC)) == (3, "always")
    assert options.get(WAL_SYNC_INTERVAL).total_seconds() == 0.1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("memtable.flush-threshold", text) for text in ("0", "1.1", "-1", "nan", "half")),
        ("memtable.max-number", "1"),
        ("memtable.size", "0"),
        ("wal.sync", "sometimes"),
    ],
)
def test_values_that_make_no_writer_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidError, match=name):
        check_options({name: text})
