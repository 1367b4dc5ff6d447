"""Session fixtures: each real server is started once per worker, when the first test asks for it."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.services.minio import minio
from tests.services.seaweedfs import seaweedfs
from tests.services.server import S3Service, ServiceFailed, ServiceMissing

_START_ATTEMPTS = 3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of a server."""
    for item in items:
        for fixture in ("s3_minio", "s3_seaweedfs"):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker("s3")


@pytest.fixture(scope="session")
def s3_seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    """A SeaweedFS server."""
    yield from _started(seaweedfs, tmp_path_factory.mktemp("seaweedfs"))


@pytest.fixture(scope="session")
def s3_minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    """A MinIO server."""
    yield from _started(minio, tmp_path_factory.mktemp("minio"))


def _first_that_starts(
    service: Callable[[Path], AbstractContextManager[S3Service]], folder: Path
) -> tuple[AbstractContextManager[S3Service], S3Service]:
    """A server that is ready: its ports may have been taken by somebody else before it was, so it is started again."""
    for attempt in range(_START_ATTEMPTS - 1):
        context = service(folder / str(attempt))
        try:
            return context, context.__enter__()
        except ServiceFailed:
            continue
    context = service(folder / "last")
    return context, context.__enter__()


def _started(service: Callable[[Path], AbstractContextManager[S3Service]], folder: Path) -> Iterator[S3Service]:
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
