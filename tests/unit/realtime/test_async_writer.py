"""A writer for asyncio: awaited calls have happened, tasks share syncs, and nothing stays open."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import InvalidError
from lakelet.realtime.async_writer import AsyncRowWriter
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.wal.wal_file import WalFile
from tests.unit.realtime.written_table import WrittenTable


def row(number: int, text: str = "a") -> dict[str, Any]:
    return {"id": number, "v": text, "x": None}


def opened(written: WrittenTable) -> AsyncRowWriter:
    writer: AsyncRowWriter = written.table.async_writer(wal_folder=written.logs)
    return writer


def test_all_calls_are_awaited(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)

    async def run() -> None:
        async with opened(written) as writer:
            assert writer.recovered == ()
            await writer.put(row(1))
            await writer.put_many([row(2), row(3), row(4)])
            assert await writer.put_if_absent(row(5))
            assert not await writer.put_if_absent(row(5, "b"))
            assert await writer.delete({"id": 3})
            assert await writer.get({"id": 2}) == row(2)
            assert await writer.get_many([{"id": 3}, {"id": 4}], ["v"]) == [None, {"v": "a"}]
            assert written.rows() == []
            await writer.flush()
            scan = await writer.scan(["id"], start={"id": 2})
            assert (await scan.to_arrow()).column("id").to_pylist() == [2, 4, 5]
            assert await scan.count() == 3
            assert [batch.num_rows async for batch in scan.to_batches()] == [3]
            with pytest.raises(InvalidError, match="expected a mapping"):
                await writer.put(7)  # type: ignore[arg-type]
            await writer.put(row(9))
        await writer.close()
        with pytest.raises(InvalidError, match="closed"):
            await writer.put(row(10))

    asyncio.run(run())
    assert [found[0] for found in written.rows()] == [1, 2, 4, 5, 9]
    written.writer().close()


def test_tasks_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = WrittenTable(tmp_path)
    sync, begun = WalFile.sync, threading.Event()

    async def run() -> int:
        async with opened(written) as writer:

            def slowly(self: WalFile) -> None:
                if not begun.is_set():
                    begun.set()
                    while len(writer._opened._log._waiting) < 15:
                        threading.Event().wait(0.001)
                sync(self)

            monkeypatch.setattr(WalFile, "sync", slowly)
            before = writer.status().syncs
            await asyncio.gather(*(writer.put(row(number)) for number in range(16)))
            return writer.status().syncs - before

    assert asyncio.run(run()) == 2
    assert len(written.rows()) == 16


def test_an_opening_that_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path)
    begun, go, closed = threading.Event(), threading.Event(), threading.Event()

    def slowly() -> RowWriter:
        begun.set()
        assert go.wait(60)
        writer = written.writer()
        close = writer.close

        def told() -> None:
            close()
            closed.set()

        writer.close = told  # type: ignore[method-assign]
        return writer

    async def run() -> None:
        writer = AsyncRowWriter(slowly)
        with pytest.raises(InvalidError, match="not open"):
            await writer.get({"id": 1})
        task = asyncio.create_task(writer.__aenter__())
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    asyncio.run(run())
    assert closed.wait(60)
    written.writer().close()


def test_an_error_of_the_opening_is_raised(tmp_path: Path) -> None:
    written = WrittenTable(tmp_path, options={"bucket": "-2"})

    async def run() -> None:
        with pytest.raises(InvalidError, match="bucket"):
            async with opened(written):
                pass

    asyncio.run(run())
