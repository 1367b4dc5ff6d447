"""The settings of a service process as one value; `config/sources` makes it of a file, the environment and flags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a process is started with; each has a meaning in docs/service.md."""

    warehouse: str = "./warehouse"
    host: str = "127.0.0.1"
    port: int = 8080
    grpc_port: int = 50051
    wal_folder: str | None = None
    most_body_bytes: int = 32 << 20
    most_waiting_records: int = 100_000
    drain_seconds: int = 30
    log_level: str = "info"
    require_keys: bool | None = None
