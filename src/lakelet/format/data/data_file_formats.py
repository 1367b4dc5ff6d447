"""The registry of data file formats, by name and by file extension."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.format.data.avro_file import AvroFormat
from lakelet.format.data.data_file_format import DataFileFormat
from lakelet.format.data.orc_file import OrcFormat
from lakelet.format.data.parquet_file import ParquetFormat
from lakelet.format.data.sst_file import SstFormat

_FORMATS: dict[str, DataFileFormat] = {
    "parquet": ParquetFormat(),
    "orc": OrcFormat(),
    "avro": AvroFormat(),
    "sst": SstFormat(),
}


def data_file_format(name: str) -> DataFileFormat:
    """The format of that name."""
    found = _FORMATS.get(name.lower())
    if found is None:
        raise InvalidError(f"file format {name!r}: expected one of {', '.join(_FORMATS)}")
    return found


def format_of_file(file_name: str) -> DataFileFormat:
    """The format of a data file, by its extension."""
    return data_file_format(file_name.rsplit(".", 1)[-1])
