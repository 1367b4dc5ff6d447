"""Clients of a running service (`lakelet serve`).

    from lakelet.client import Client
    with Client("http://127.0.0.1:8080", api_key="lk_…") as client:
        client.write("users", "u1", "2026-01-31T10:00:00Z", {"name": "Ada"})
        client.query("SELECT count(*) FROM users").rows()

    client, async_client ── repeats ── connections ── HTTP
                         └─ bodies, answers, problems: what is sent and what comes back

Nothing here imports the server: a program that only talks to one needs none of its packages.
"""

from lakelet.client.answers import QueryAnswer, Record, RefusedRecord, ServedTable, ServiceHealth, WriteAnswer
from lakelet.client.async_client import AsyncClient
from lakelet.client.client import Client
from lakelet.client.repeats import RepeatPolicy

__all__ = [
    "AsyncClient",
    "Client",
    "QueryAnswer",
    "Record",
    "RefusedRecord",
    "RepeatPolicy",
    "ServedTable",
    "ServiceHealth",
    "WriteAnswer",
]
