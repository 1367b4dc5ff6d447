"""Options of SST files: how lookup files are laid out. They change speed and size, never rows."""

from typing import Any

from lakelet.options.kinds import BOOL, POSITIVE_SIZE, integer
from lakelet.options.option import ACTED, Option, declare

SST_BLOCK_SIZE = declare(
    "sst.block-size",
    POSITIVE_SIZE,
    "4 kb",
    "Bytes before compression from which a data block of an SST file is closed.",
    ACTED,
)
SST_RESTART_INTERVAL = declare(
    "sst.restart-interval",
    integer(1),
    "16",
    "Entries of a data block from one restart point, where keys and numbers are stored whole, to the next.",
    ACTED,
)
SST_BLOOM_BITS_PER_KEY = declare(
    "sst.bloom-bits-per-key",
    integer(1, 64),
    "10",
    "Bits of the bloom filter of an SST file for each key; 10 let about 1 % of absent keys through.",
    ACTED,
)
SST_DELTA_ENCODING = declare(
    "sst.delta-encoding",
    BOOL,
    "true",
    "Whether whole numbers, dates and times of an SST file are stored as differences to the row before.",
    ACTED,
)

SST_OPTIONS: tuple[Option[Any], ...] = (
    SST_BLOCK_SIZE,
    SST_RESTART_INTERVAL,
    SST_BLOOM_BITS_PER_KEY,
    SST_DELTA_ENCODING,
)
