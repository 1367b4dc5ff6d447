"""The arguments of a write are checked before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet.errors import InvalidError
from lakelet.spark.write.write_request import WriteArguments, WriteRequest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "replace"}, "mode 'replace': expected one of append, upsert"),
        ({"partition": {"dt": "a"}}, "partition= goes with mode='overwrite', found mode='append'"),
        ({"on_duplicate": "last"}, "on_duplicate 'last': expected one of raise, any"),
        ({"driver_rows": -1}, "driver_rows -1: expected a whole number from 0 on"),
        ({"driver_bytes": 0.5}, "driver_bytes 0.5: expected a whole number"),
        ({"parallelism": 0}, "parallelism 0: expected a number from 1 on"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        WriteRequest(**arguments)


def test_arguments_of_jobs_are_arguments_of_a_write() -> None:
    given: WriteArguments = {"mode": "overwrite", "partition": {"dt": "a"}, "parallelism": 3}
    assert WriteRequest(**given) == WriteRequest("overwrite", {"dt": "a"}, parallelism=3)
    assert set(WriteArguments.__annotations__) <= set(WriteRequest.__dataclass_fields__)
