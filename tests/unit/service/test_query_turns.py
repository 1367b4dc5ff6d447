"""Queries that wait for their turn hold up neither rows nor each other, and too many of them are refused at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lakelet.catalog.connect import connect
from lakelet.errors import InvalidError, OverloadedError
from lakelet.service.access.caller import ANYBODY
from lakelet.service.query.query_engine import QueryRequest
from lakelet.service.query.query_limits import QueryLimitError
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings
from lakelet.service.values import CreateTableRequest, Record, WriteRequest

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = b.range"


def _service(folder: Path, **settings: int) -> Service:
    chosen = ServiceSettings(warehouse=str(folder / "lake"), wal_folder=str(folder / "wal"), **settings)  # type: ignore[arg-type]
    return Service(connect(chosen.warehouse), chosen)


def test_too_many_queries_are_refused_and_rows_go_on(tmp_path: Path) -> None:
    async def run() -> None:
        service = _service(tmp_path, query_running=1)
        await service.start()
        try:
            await service.create_table(CreateTableRequest("users"), ANYBODY)
            running = [
                asyncio.create_task(service.query_json(QueryRequest(ENDLESS, request_id="r"), ANYBODY))
                for _ in range(3)
            ]
            while service.starting_queries != 3:
                await asyncio.sleep(0)
            with pytest.raises(OverloadedError, match="3 queries"):
                await service.query_json(QueryRequest("SELECT 1"), ANYBODY)
            written = await service.write(WriteRequest("users", Record("a", 1, {"n": 1})), ANYBODY)
            assert written.written == 1
            while not all(task.done() for task in running):
                await service.cancel_query("r")
                await asyncio.sleep(0)
            for task in running:
                with pytest.raises((InvalidError, OverloadedError)):
                    await task
            assert await service.query_json(QueryRequest("SELECT n FROM users"), ANYBODY) == '[{"n":1}]'
        finally:
            await service.stop()

    asyncio.run(run())


def test_the_limits_of_the_settings(tmp_path: Path) -> None:
    async def run() -> None:
        for limits, sql, told in (
            ({"query_rows": 10}, "FROM range(11)", "10 rows"),
            ({"query_seconds": 1}, ENDLESS, "1 seconds"),
        ):
            service = _service(tmp_path, **limits)
            await service.start()
            try:
                with pytest.raises(QueryLimitError, match=told):
                    await service.query_json(QueryRequest(sql), ANYBODY)
            finally:
                await service.stop()

    asyncio.run(run())


def test_the_first_queries_at_once_share_an_engine(tmp_path: Path) -> None:
    async def run() -> None:
        service = _service(tmp_path)
        await service.start()
        try:
            answers = await asyncio.gather(
                *(service.query_json(QueryRequest("SELECT 1 AS a"), ANYBODY) for _ in range(8))
            )
            assert set(answers) == {'[{"a":1}]'}
        finally:
            await service.stop()

    asyncio.run(run())
