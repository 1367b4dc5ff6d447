"""The settings of lookup files, from the table's options and the caller's."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.format.sst.bloom_filter import HASH_COUNT
from lakelet.format.sst.sst_writer import SstSettings
from lakelet.model.schema import TableSchema
from lakelet.options import (
    LOOKUP_BLOOM_FILTER_ENABLED,
    LOOKUP_BLOOM_FILTER_FPP,
    LOOKUP_CACHE_FILE_RETENTION,
    LOOKUP_CACHE_MAX_DISK_SIZE,
    LOOKUP_CACHE_MAX_MEMORY_SIZE,
    LOOKUP_CACHE_SPILL_COMPRESSION,
    SST_BLOCK_SIZE,
    SST_BLOOM_BITS_PER_KEY,
    SST_DELTA_ENCODING,
    SST_RESTART_INTERVAL,
    TableOptions,
)
from lakelet.read.serve.lookup_folder import DiskLimits


@dataclass(frozen=True, slots=True)
class LookupSettings:
    """How lookup files are laid out, and what they may take of disk and memory."""

    root: str
    sst: SstSettings
    disk: DiskLimits
    memory_bytes: int

    @staticmethod
    def of(schema: TableSchema, folder: object) -> LookupSettings:
        """The settings of a table; files are below `folder`, or below `lakelet/lookup` in the user's cache folder."""
        options = TableOptions(schema.options)
        bits = 0
        if options.get(LOOKUP_BLOOM_FILTER_ENABLED):
            bits = options.get(SST_BLOOM_BITS_PER_KEY)
            if LOOKUP_BLOOM_FILTER_FPP.name in schema.options:
                bits = _bits_for(options.get(LOOKUP_BLOOM_FILTER_FPP))
        return LookupSettings(
            _root(folder),
            SstSettings(
                block_bytes=options.get(SST_BLOCK_SIZE),
                restart_interval=options.get(SST_RESTART_INTERVAL),
                bloom_bits_per_key=bits,
                compression=options.get(LOOKUP_CACHE_SPILL_COMPRESSION),
                delta_encoding=options.get(SST_DELTA_ENCODING),
            ),
            DiskLimits(
                options.get(LOOKUP_CACHE_MAX_DISK_SIZE), options.get(LOOKUP_CACHE_FILE_RETENTION).total_seconds()
            ),
            options.get(LOOKUP_CACHE_MAX_MEMORY_SIZE),
        )


def _bits_for(share: float) -> int:
    """The bits per key with which the probes of absent keys all hit in about this share of cases."""
    if not 0 < share < 1:
        raise InvalidError(f"option '{LOOKUP_BLOOM_FILTER_FPP.name}': expected a share between 0 and 1, found {share}")
    return max(1, math.ceil(-HASH_COUNT / math.log(1 - share ** (1 / HASH_COUNT))))


def _root(folder: object) -> str:
    if folder is None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(cache, "lakelet", "lookup")
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise InvalidError(f"folder: expected the path of a folder, found {folder!r}")
    path = os.fspath(folder)
    if not isinstance(path, str) or "://" in path:
        raise InvalidError(f"folder: expected a folder of this machine, found {folder!r}")
    return os.path.abspath(os.path.expanduser(path))
