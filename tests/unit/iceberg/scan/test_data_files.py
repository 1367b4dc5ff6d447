import datetime as dt
from io import BytesIO

import pyarrow as pa
import pytest
from pyarrow import orc

from lakelet.errors import InvalidError
from lakelet.iceberg.scan.data_files import open_file
from lakelet.iceberg.scan.evolution import stored_fields
from tests.unit.iceberg.scan.test_evolution import _field


def _orc(moment: dt.datetime) -> BytesIO:
    stream = BytesIO()
    orc.write_table(pa.table({"at": pa.array([moment], pa.timestamp("us"))}), stream)
    stream.seek(0)
    return stream


def _moments(moment: dt.datetime) -> list[object]:
    columns = stored_fields(pa.schema([_field(1, "at", pa.timestamp("ns"))]), None, "f.orc")
    opened = open_file(_orc(moment), "ORC", "f.orc")
    return [value.as_py() for batch in opened.batches(columns) for value in batch.column(0).cast(pa.timestamp("us"))]


def test_moments_that_arrow_cannot_hold_are_refused_by_name() -> None:
    near = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert _moments(near) == [near]
    with pytest.raises(InvalidError, match=r"f\.orc: moments before 1677 or after 2262 are not read from ORC files"):
        _moments(dt.datetime(1, 1, 1))
