"""Give memory back to the machine that Arrow keeps after a compaction.

A compaction holds about a hundred megabytes of rows for a second or two, in the process of the driver. Arrow's pool keeps freed
pages for the next allocations of the thread that freed them, and a stream runs for weeks: its memory would stay that of the
largest compaction, in each thread that ever ran one.
"""

from __future__ import annotations

import pyarrow as pa


def give_back() -> None:
    """Called by the thread that compacted; a fraction of a millisecond where there is nothing to give."""
    pa.default_memory_pool().release_unused()
