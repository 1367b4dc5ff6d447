"""`lakelet inspect wal`: whose rows a write-ahead log holds, and whether it is whole."""

from __future__ import annotations

import os
from collections import Counter

from lakelet.cli.output.output import Output
from lakelet.errors import NotFoundError
from lakelet.format.wal.wal_log import WalContents
from lakelet.format.wal.wal_record import DELETE, GROUP, KEY, PUT
from lakelet.realtime.wal.wal_folder import log_numbers, read_log

_SHOWN = 20
_SHOWN_BYTES = 24
_TYPES = {PUT: "PUT", DELETE: "DELETE", GROUP: "GROUP", KEY: "KEY"}


def inspect_wal(output: Output, path: str) -> None:
    """A log, or all logs of a folder; CorruptionError for a damaged one."""
    paths = [path]
    if os.path.isdir(path):
        paths = [os.path.join(path, f"wal-{number}.log") for number in log_numbers(path)]
        if not paths:
            raise NotFoundError(f"{path}: expected logs named wal-N.log, found none")
    for one in paths:
        _show(output, one, read_log(one))


def _show(output: Output, path: str, found: WalContents) -> None:
    header = found.header
    counts = Counter(found.records[:, 0].tolist())
    output.values(
        path,
        {
            "table": header.table_identity,
            "schema": header.schema_id,
            "sequence number": header.sequence_number,
            "commit user": header.commit_user,
            "puts": counts[PUT],
            "deletes": counts[DELETE],
            "groups": found.groups,
            "keys": len(found.keys),
            "bytes": len(found.data),
            "torn bytes": found.torn_bytes,
        },
    )
    if not len(found.scanned):
        return
    rows = [
        (_TYPES[kind], _shown(found.data[key:key_end]), end - begin)
        for kind, key, key_end, begin, end in found.scanned[:_SHOWN].tolist()
    ]
    output.rows("the first records", ("type", "key", "row bytes"), rows)


def _shown(key: bytes) -> str:
    return key.hex() if len(key) <= _SHOWN_BYTES else f"{key[:_SHOWN_BYTES].hex()}…"
