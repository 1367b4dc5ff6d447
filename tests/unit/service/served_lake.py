"""A service with its HTTP edge in this process, without sockets."""

import asyncio
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

import lakelet
from lakelet.service.access.access import Access
from lakelet.service.access.caller import ANYBODY
from lakelet.service.rest.app import RestApp
from lakelet.service.service import Service
from lakelet.service.settings import ServiceSettings

MORNING = "2026-01-31T10:00:00Z"


class ServedLake:
    """A service over a warehouse below a folder; made again over the same folder it is a restart."""

    def __init__(
        self,
        folder: Path,
        *,
        access: Access | None = None,
        callbacks: Any = None,
        logs: str = "wal",
        **settings: Any,
    ) -> None:
        self.settings = ServiceSettings(warehouse=str(folder / "warehouse"), wal_folder=str(folder / logs), **settings)
        self.lake = lakelet.connect(self.settings.warehouse)
        self.service = Service(self.lake, self.settings, callbacks=callbacks)
        self.app = RestApp(self.service, access or Access(None))
        self._runner = asyncio.Runner()
        self.headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._runner.run(self.service.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self.service.stop())
        self._runner.close()

    def run(self, awaited: Any) -> Any:
        return self._runner.run(awaited)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        more["headers"] = {**self.headers, **more.get("headers", {})}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **more)

        answer: httpx.Response = self._runner.run(send())
        return answer

    def create(self, name: str, **config: Any) -> None:
        answer = self.request("POST", "/v1/tables", json={"table_name": name, "config": config})
        assert answer.status_code == 201, answer.text

    def write(self, table: str, payload: Any, id: str = "a", timestamp: str = MORNING) -> dict[str, Any]:
        body = {"table": table, "id": id, "timestamp": timestamp, "payload": payload}
        answer = self.request("POST", "/v1/data", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def records(self, table: str, id: str = "a") -> list[dict[str, Any]]:
        path = f"/v1/data/{table}/{quote(id, safe='')}" if id != ".." else f"/v1/data/{table}?id=.."
        answer = self.request("GET", path)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["records"]
        return found

    def payloads(self, table: str, id: str = "a") -> list[Any]:
        return [record["payload"] for record in self.records(table, id)]

    def payload_type(self, table: str) -> str:
        return str(self.lake.table(f"default.{table}").schema.field("payload").type)

    def flush(self, table: str) -> None:
        writer = self.service.tables.open(table).writer
        assert writer is not None
        writer.flush()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """What everybody else reads: committed rows."""
        found: list[dict[str, Any]] = self.lake.sql(sql).to_arrow().to_pylist()
        return found


__all__ = ["ANYBODY", "MORNING", "ServedLake"]
