"""`lakelet inspect sst`: what a file holds, and damage that is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.format.sst.sst_writer import SstSettings, SstWriter
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.unit.cli.conftest import Run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "0-00001-a1b2c3d4.sst"
    with path.open("wb") as sink:
        fields = [Field(0, "id", parse_type("INT NOT NULL")), Field(4, "Name", parse_type("ARRAY<STRING>"))]
        writer = SstWriter(sink, 2, fields, SstSettings(block_bytes=64), create_ms=1_704_067_200_000)
        keys = pa.array([b"key-%02d" % number for number in range(40)], pa.large_binary())
        kinds = pa.array([number % 4 for number in range(40)], pa.int8())
        names = pa.array([["a", None]] * 40)
        writer.write(keys, pa.array(range(100, 140)), kinds, [pa.array(range(40), pa.int32()), names])
        writer.close()
    return path


def test_a_file_is_shown(run: Run, file: Path) -> None:
    header, columns, blocks, rows = run("inspect", "sst", str(file), "--json").objects
    assert (header["rows"], header["schema"], header["compression"], header["delta encoding"]) == (40, 2, "none", True)
    assert (header["created"], header["bytes"]) == ("2024-01-01T00:00:00+00:00", file.stat().st_size)
    assert header["least key"] == b"key-00".hex()
    assert [(row["id"], row["name"], row["type"]) for row in columns["rows"]] == [
        (0, "id", "INT NOT NULL"),
        (4, "Name", "ARRAY<STRING>"),
    ]
    assert blocks["rows"][0]["offset"] == 32
    assert [(row["sequence number"], row["kind"]) for row in rows["rows"]][:2] == [(100, "+I"), (101, "-U")]


def test_damage_and_what_is_no_file(run: Run, file: Path, tmp_path: Path) -> None:
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)
    damaged = run("inspect", "sst", str(file))
    assert damaged.code != 0
    assert "the file has the CRC32" in damaged.err
    for arguments in (
        ("sst",),
        ("sst", str(file), "more"),
        ("sst", str(tmp_path / "none.sst")),
        ("sst", str(tmp_path)),
    ):
        assert run("inspect", *arguments).code != 0


def test_a_folder_is_refused(run: Run, tmp_path: Path) -> None:
    refused = run("inspect", "sst", str(tmp_path))
    assert (refused.code, "expected an SST file, found a folder" in refused.err) == (1, True)
