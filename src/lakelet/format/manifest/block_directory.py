"""The directory of a manifest's blocks: the partition range of each.

A large manifest of a partitioned table is written in the order of its partitions, in small Avro blocks, and its header says of
each block what a manifest list says of a whole manifest. A plan with a partition filter then decompresses and decodes
only the blocks that may match, so that its cost grows with the result and not with the table. Other
readers ignore the key, and manifests of other writers, which lack it, are read whole.

    header["lakelet.blocks"] = JSON [[entries, min, max, [null count, …]], …]     one element per block, in their order
    min, max                 = base64 of a BinaryRow: the least and the greatest value of each partition column
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakelet.errors import CorruptionError
from lakelet.format.metadata.stored_json import load_json
from lakelet.model.data_file import Stats
from lakelet.model.manifest import BlockPartitions

BLOCKS_KEY = "lakelet.blocks"


Describer = Callable[[pa.Table, Sequence[int]], Sequence[Stats]]


def encode_directory(entries: pa.Table, counts: Sequence[int], describe: Describer) -> dict[str, bytes]:
    """The header entry for blocks with these entry counts; `describe` gives the partition statistics of each."""
    rows = [
        [count, b64encode(stats.min_values).decode(), b64encode(stats.max_values).decode(), stats.null_counts]
        for count, stats in zip(counts, describe(entries, counts), strict=True)
    ]
    return {BLOCKS_KEY: json.dumps(rows, separators=(",", ":")).encode()}


def decode_directory(metadata: Mapping[str, bytes], *, path: str) -> list[BlockPartitions] | None:
    """The directory of a manifest's header, None where it has none."""
    text = metadata.get(BLOCKS_KEY)
    if text is None:
        return None
    try:
        return [
            BlockPartitions(
                int(count), Stats(b64decode(low, validate=True), b64decode(high, validate=True), tuple(nulls))
            )
            for count, low, high, nulls in load_json(text)
        ]
    except (ValueError, TypeError) as error:
        raise CorruptionError(f"{path}: {BLOCKS_KEY} in the header is no directory of blocks: {error}") from error
