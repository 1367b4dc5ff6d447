"""Session fixtures: each real server is started once per worker, when the first test asks for it."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.services.minio import minio
from tests.services.redis import RedisService, redis
from tests.services.seaweedfs import seaweedfs
from tests.services.server import S3Service, ServiceFailed, ServiceMissing

_START_ATTEMPTS = 3
_Service = TypeVar("_Service")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of a server."""
    for item in items:
        for fixture in ("s3_minio", "s3_seaweedfs"):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker("s3")
        if "redis_service" in getattr(item, "fixturenames", ()):
            item.add_marker("redis")


@pytest.fixture(scope="session")
def s3_seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    """A SeaweedFS server."""
    yield from _started(seaweedfs, tmp_path_factory.mktemp("seaweedfs"))


@pytest.fixture(scope="session")
def s3_minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    """A MinIO server."""
    yield from _started(minio, tmp_path_factory.mktemp("minio"))


@pytest.fixture(scope="session")
def redis_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisService]:
    """A Redis server. Whoever pauses or kills it brings it back; keys of other tests may be in it."""
    yield from _started(redis, tmp_path_factory.mktemp("redis"))


def _first_that_starts(
    service: Callable[[Path], AbstractContextManager[_Service]], folder: Path
) -> tuple[AbstractContextManager[_Service], _Service]:
    """A server that is ready: its ports may have been taken by somebody else before it was, so it is started again."""
    for attempt in range(_START_ATTEMPTS - 1):
        context = service(folder / str(attempt))
        try:
            return context, context.__enter__()
        except ServiceFailed:
            continue
    context = service(folder / "last")
    return context, context.__enter__()


def _started(service: Callable[[Path], AbstractContextManager[_Service]], folder: Path) -> Iterator[_Service]:
    try:
        context, started = _first_that_starts(service, folder)
    except ServiceMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs this service: {missing}")
        pytest.skip(str(missing))
    try:
        yield started
    finally:
        context.__exit__(None, None, None)
