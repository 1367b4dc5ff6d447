"""Many processes upsert and delete the same keys, longer than `make test` has time for."""

import os
import uuid
from pathlib import Path

import pytest

from tests.integration.test_concurrent_upserts import MODES, check_upserts, new_table
from tests.integration.upserting_processes import race_for_keys
from tests.integration.writing_processes import Address
from tests.services.server import S3Service

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]


@pytest.mark.parametrize("mode", MODES)
def test_many_upserts_on_a_disk(tmp_path: Path, mode: str) -> None:
    address = new_table(Address(str(tmp_path)), mode)
    check_upserts(address, race_for_keys(address, 8, 40, across=mode == "across"), across=mode == "across")


@pytest.mark.parametrize("mode", MODES)
def test_many_upserts_on_minio(s3_minio: S3Service, mode: str) -> None:
    address = new_table(Address(s3_minio.url(f"race/{uuid.uuid4().hex}"), s3_minio.options), mode)
    check_upserts(address, race_for_keys(address, 6, 25, across=mode == "across"), across=mode == "across")


def test_many_upserts_on_seaweedfs(s3_seaweedfs: S3Service) -> None:
    address = new_table(Address(s3_seaweedfs.url(f"race/{uuid.uuid4().hex}"), s3_seaweedfs.options), "dynamic")
    check_upserts(address, race_for_keys(address, 4, 20, across=False), across=False)
