"""Many processes commit to one table at once: every acknowledged row is there once, and no snapshot or schema is lost."""

import pickle
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

import lakelet
from lakelet.model.snapshot import CommitKind
from lakelet.storage.open import open_store
from tests.crash.warehouse import Rows, check
from tests.integration.writing_processes import TABLE, Acknowledged, Address, race, rows_of
from tests.services.server import S3Service

MIX = (
    "append",
    "append_twice",
    "overwrite_own_partition",
    "append_and_delete",
    "add_columns",
    "add_columns",
    "append_and_delete",
    "append",
)


def new_table(address: Address, **arguments: object) -> Address:
    lake = lakelet.connect(address.location, address.options)
    lake.create_database("d")
    lake.create_table(TABLE, [("worker", "BIGINT"), ("n", "BIGINT")], **arguments)  # type: ignore[arg-type]
    return address


def on_service(service: S3Service) -> Address:
    return Address(service.url(f"race/{uuid.uuid4().hex}"), service.options)


def checked_rows(address: Address) -> Rows:
    found = check(open_store(address.location, address.options))
    assert found is not None
    return [row[:2] for row in found]


def expected(acknowledged: Sequence[Acknowledged]) -> Rows:
    return sorted((row for one in acknowledged for row in one.rows), key=repr)


def commits(address: Address) -> int:
    """How many snapshots brought or took rows, in a line without gaps."""
    snapshots = address.table().snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    return sum(snapshot.commit_kind is not CommitKind.COMPACT for snapshot in snapshots)


def check_race(address: Address, acknowledged: Sequence[Acknowledged]) -> None:
    """What was acknowledged is there once, and each snapshot with rows is somebody's; compactions come besides."""
    assert checked_rows(address) == expected(acknowledged)
    made = [number for one in acknowledged for number in one.snapshots]
    assert len(set(made)) == len(made) == commits(address)
    names = address.table().schema.names
    assert sorted(names[2:]) == sorted(name for one in acknowledged for name in one.columns)


@pytest.mark.deep
def test_eight_processes_append_on_a_disk(tmp_path: Path) -> None:
    """More commits of fewer kinds than where operations are mixed."""
    address = new_table(Address(str(tmp_path)))
    acknowledged = race(address, ["append"] * 8, 25)
    check_race(address, acknowledged)
    assert commits(address) == 200


def test_eight_processes_mix_operations_on_a_disk(tmp_path: Path) -> None:
    address = new_table(Address(str(tmp_path)), partitioned_by=["worker"])
    check_race(address, race(address, MIX, 8))


@pytest.mark.deep
def test_eight_processes_append_on_minio(s3_minio: S3Service) -> None:
    address = new_table(on_service(s3_minio))
    acknowledged = race(address, ["append"] * 8, 25)
    check_race(address, acknowledged)
    assert commits(address) == 200


def test_processes_mix_operations_on_minio(s3_minio: S3Service) -> None:
    address = new_table(on_service(s3_minio), partitioned_by=["worker"])
    check_race(address, race(address, MIX[1:6], 5))


@pytest.mark.deep
def test_four_processes_append_on_seaweedfs(s3_seaweedfs: S3Service) -> None:
    address = new_table(on_service(s3_seaweedfs))
    check_race(address, race(address, ["append"] * 4, 5))


COMMIT_ELSEWHERE = """
import pickle, sys
import lakelet
location, messages = pickle.load(sys.stdin.buffer)
made = lakelet.connect(location).table("d.t").new_commit("job", 7).commit(messages)
print(made.id)
"""


def test_messages_are_committed_by_another_process_once(tmp_path: Path) -> None:
    table = new_table(Address(str(tmp_path)), partitioned_by=["worker"]).table()
    messages = []
    for worker in range(3):
        with table.new_write() as write:
            write.write(rows_of(worker, [1, 2]))
            messages += write.prepare_commit()
    payload = pickle.dumps((str(tmp_path), messages))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", COMMIT_ELSEWHERE], input=payload, capture_output=True, env=_environment()
        )
        assert done.stdout.strip() == b"1", done.stderr.decode()
    assert checked_rows(Address(str(tmp_path))) == [(worker, number) for worker in range(3) for number in (1, 2)]


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}


@pytest.mark.parametrize("partitioned", [False, True])
def test_splits_planned_here_are_read_elsewhere(tmp_path: Path, partitioned: bool) -> None:
    """Whoever holds a plan reads that version, whatever is committed since."""
    table = new_table(Address(str(tmp_path)), partitioned_by=["worker"] if partitioned else []).table()
    table.write(rows_of(1, [1, 2]))
    scan = pickle.loads(pickle.dumps(table.scan()))
    table.write(rows_of(1, [3]), mode="overwrite")
    assert sorted(scan.to_arrow().column("n").to_pylist()) == [1, 2]
