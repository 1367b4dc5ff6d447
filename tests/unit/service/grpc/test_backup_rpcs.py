"""TriggerBackup and RecoverData over gRPC: a table is copied, its files are lost, and all rows are there again."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest

from lakelet.protos.message_types import OLAP
from tests.unit.service.grpc.running_service import compiled_client, running, seed_text


def test_a_table_is_copied_and_recovered(tmp_path: Path) -> None:
    client = compiled_client(seed_text(), OLAP)

    async def call(channel: Any, method: str, **fields: Any) -> Any:
        return await client.call(channel, method)(client.message(f"{method}Request")(**fields))

    async def run() -> None:
        async with running(tmp_path, backup=tmp_path / "second") as (service, channel):
            await call(channel, "CreateTable", table_name="users")
            for number in range(3):
                message = client.message("WriteRequest")(table="users", id=f"u{number}")
                message.timestamp.seconds = 1_769_850_000
                message.payload["n"] = number
                await client.call(channel, "Write")(message)
            done = await call(channel, "TriggerBackup", table="users")
            assert done.success
            assert done.files_backed_up >= 1
            assert (await call(channel, "TriggerBackup", table="users")).files_backed_up == 0
            intact = await call(channel, "RecoverData", table="users")
            assert (intact.success, intact.files_recovered) == (True, 0)
            (folder,) = (tmp_path / "lake").glob("**/users")
            lost = [one for one in folder.glob("**/bucket-*/*.parquet") if one.is_file()]
            assert lost
            for one in lost:
                one.unlink()
            again = await call(channel, "RecoverData", table="users")
            assert (again.success, again.files_recovered) == (True, len(lost))
            found = await call(channel, "Query", sql="SELECT id, n FROM users ORDER BY id")
            assert found.result_json == '[{"id":"u0","n":0},{"id":"u1","n":1},{"id":"u2","n":2}]'
            shutil.rmtree(tmp_path / "second")
            with pytest.raises(grpc.aio.AioRpcError) as missing:
                await call(channel, "RecoverData", table="users")
            assert missing.value.code() != grpc.StatusCode.OK
            assert service.backups is not None

    asyncio.run(run())
