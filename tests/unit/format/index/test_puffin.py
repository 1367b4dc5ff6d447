"""Puffin files of deletion vectors: pyiceberg reads them."""

import numpy as np
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from lakelet.format.index import deletion_vectors
from lakelet.format.index.puffin import VectorBlob, blob_offsets, encode_puffin

POSITIONS = {"a.parquet": [0, 5, 70_000], "ü/b.parquet": list(range(10_000)), "c.parquet": [2**31 - 2]}


def blobs() -> list[VectorBlob]:
    return [
        VectorBlob(deletion_vectors.encode(np.array(found, np.int64), bits64=True), name, len(found))
        for name, found in POSITIONS.items()
    ]


def test_pyiceberg_reads_each_vector() -> None:
    found = deletion_vectors_from_puffin_file(PuffinFile(encode_puffin(blobs())))
    assert {one.referenced_data_file: one.to_vector().to_pylist() for one in found} == POSITIONS


def test_offsets_are_those_of_the_vectors() -> None:
    data, made = encode_puffin(blobs()), blobs()
    for blob, offset in zip(made, blob_offsets(made), strict=True):
        positions = deletion_vectors.decode(data[offset : offset + len(blob.data)], path="x")
        assert positions.tolist() == POSITIONS[blob.data_file]


def test_a_file_without_vectors() -> None:
    assert blob_offsets([]) == []
    assert PuffinFile(encode_puffin([])).footer.blobs == []
