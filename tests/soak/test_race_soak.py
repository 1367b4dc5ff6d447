"""Races of many processes, longer than `make test` has time for."""

import os
import uuid
from pathlib import Path

import pytest

from tests.integration.test_concurrent_writers import MIX, check_race, new_table
from tests.integration.writing_processes import Address, race
from tests.services.server import S3Service

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]


@pytest.mark.parametrize("seed", range(3))
def test_a_long_mix_on_a_disk(tmp_path: Path, seed: int) -> None:
    address = new_table(Address(str(tmp_path)), partitioned_by=["worker"])
    check_race(address, race(address, MIX[seed:] + MIX[:seed], 40))


def test_a_long_mix_on_minio(s3_minio: S3Service) -> None:
    address = new_table(Address(s3_minio.url(f"race/{uuid.uuid4().hex}"), s3_minio.options), partitioned_by=["worker"])
    check_race(address, race(address, MIX, 40))


def test_eight_processes_on_seaweedfs(s3_seaweedfs: S3Service) -> None:
    address = new_table(Address(s3_seaweedfs.url(f"race/{uuid.uuid4().hex}"), s3_seaweedfs.options))
    check_race(address, race(address, ["append"] * 8, 25))
