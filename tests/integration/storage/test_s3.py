"""The store contract on real S3 servers, and what only S3 can get wrong."""

import pickle
import time
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.errors import InvalidError, NotFoundError, PermissionDeniedError, UnavailableError
from lakelet.storage.open import open_store
from lakelet.storage.retry import RetryingStore
from lakelet.storage.s3.s3_options import S3Options
from lakelet.storage.s3.s3_store import S3Store
from lakelet.storage.store import ObjectStore
from tests.services.fake_s3 import FakeS3, fake_s3
from tests.services.server import S3Service
from tests.unit.storage.contract import StoreContract


def opened(service: S3Service) -> ObjectStore:
    return open_store(service.url(f"w/{uuid.uuid4().hex}"), service.options)


class S3Contract(StoreContract):
    """The contract, and checks of S3 itself."""

    def test_it_is_probed_and_retried(self, store: ObjectStore) -> None:
        assert isinstance(store, RetryingStore)
        assert isinstance(store.inner, S3Store)

    def test_a_pickled_store_opens_its_client_where_it_arrives(self, store: ObjectStore) -> None:
        before = pickle.dumps(store)
        store.put("x", b"1")
        assert len(pickle.dumps(store)) == len(before)
        assert pickle.loads(before).get("x") == b"1"

    def test_many_objects_are_listed_and_deleted_in_bulk(self, store: ObjectStore) -> None:
        paths = [f"many/{number:04}" for number in range(1100)]
        for path in paths:
            store.put(path, b"1")
        assert [info.path for info in store.list("many")] == paths
        assert len(store.list_folder("many").files) == 1100
        store.delete(paths)
        assert list(store.list("many")) == []

    def test_a_multipart_parquet_file_is_whole(self, store: ObjectStore) -> None:
        table = pa.table({"v": [uuid.uuid4().hex for _ in range(600_000)]})
        with store.open_output("big.parquet") as output:
            pq.write_table(table, output, use_dictionary=False, compression="none")
            assert output.tell() > 2 * 8 * 2**20
        filesystem, path = store.arrow_path("big.parquet")
        assert pq.read_table(path, filesystem=filesystem).equals(table)

    def test_folder_markers_of_other_tools_are_no_objects(self, store: ObjectStore) -> None:
        store.put("w/t/b/c", b"1")
        store.put("w/t/empty", b"")
        for folder in ("w", "w/t", "w/t/b", "w/t/lonely"):
            filesystem, path = store.arrow_path(folder)
            filesystem.create_dir(path, recursive=False)
        assert [info.path for info in store.list("")] == ["w/t/b/c", "w/t/empty"]
        assert [info.path for info in store.list("w/t")] == ["w/t/b/c", "w/t/empty"]
        assert [info.path for info in store.list_folder("w/t").files] == ["w/t/empty"]
        store.move_folder("w/t", "w/u")
        assert [info.path for info in store.list("")] == ["w/u/b/c", "w/u/empty"]
        assert store.list_folder("w").folders == ("w/u",)

    def test_wrong_keys_are_denied(self, service: S3Service) -> None:
        options = service.options | {"s3.secret-key": "wrong-secret"}
        store = S3Store(service.bucket, "w", S3Options.parse(options))
        calls: list[Callable[[], object]] = [
            lambda: store.get("x"),
            lambda: store.head("x"),
            lambda: store.put("x", b""),
            lambda: store.put_if_absent("x", b""),
            lambda: list(store.list("")),
            lambda: store.list_folder(""),
            lambda: store.delete(["x"]),
        ]
        for call in calls:
            with pytest.raises(PermissionDeniedError, match=f"s3://{service.bucket}/w"):
                call()

    def test_a_missing_bucket_is_named(self, service: S3Service) -> None:
        store = S3Store("no-such-bucket", "w", S3Options.parse(service.options))
        with pytest.raises(NotFoundError, match="no-such-bucket"):
            store.get("x")


class TestMinIO(S3Contract):
    @pytest.fixture
    def service(self, s3_minio: S3Service) -> S3Service:
        return s3_minio

    @pytest.fixture
    def store(self, s3_minio: S3Service) -> ObjectStore:
        return opened(s3_minio)


class TestSeaweedFS(S3Contract):
    racers = 4
    folders_vanish = False

    @pytest.fixture
    def service(self, s3_seaweedfs: S3Service) -> S3Service:
        return s3_seaweedfs

    @pytest.fixture
    def store(self, s3_seaweedfs: S3Service) -> ObjectStore:
        return opened(s3_seaweedfs)


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


def store_on(fake: FakeS3) -> S3Store:
    return S3Store("bucket", "w", S3Options.parse(fake.options))


def test_rule_2_a_create_that_was_kept_and_answered_503_is_sent_once(fake: FakeS3) -> None:
    fake.fail_puts_after_keeping = 1
    store = store_on(fake)
    with pytest.raises(UnavailableError, match=r"s3://bucket/w/snapshot-1.*503"):
        store.put_if_absent("snapshot-1", b"{}")
    assert [method for method, _ in fake.requests] == ["PUT"]
    assert fake.objects == {"/bucket/w/snapshot-1": b"{}"}
    assert not store.put_if_absent("snapshot-1", b"{}")


def test_a_plain_put_is_sent_again(fake: FakeS3) -> None:
    fake.fail_puts_after_keeping = 1
    store_on(fake).put("x", b"1")
    assert [method for method, _ in fake.requests] == ["PUT", "PUT"]


def test_a_create_refused_for_a_request_in_flight_is_looked_at(fake: FakeS3) -> None:
    fake.conflicts = 1
    with pytest.raises(UnavailableError, match="409"):
        store_on(fake).put_if_absent("snapshot-1", b"{}")
    fake.conflicts = 1
    fake.objects["/bucket/w/snapshot-2"] = b"theirs"
    assert not store_on(fake).put_if_absent("snapshot-2", b"{}")


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with fake_s3() as gone:
        store = store_on(gone)
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="s3://bucket/w/x"):
        store.put_if_absent("x", b"")
    # It is not asked again for minutes.
    assert time.monotonic() - started < 100


def test_rule_11_a_server_that_ignores_the_condition_cannot_hold_a_warehouse(fake: FakeS3) -> None:
    fake.honours_conditions = False
    with pytest.raises(InvalidError, match="does not honour conditional PUT"):
        open_store("s3://bucket/w", fake.options)
    assert fake.objects == {}


def test_a_bucket_is_probed_once_in_a_process(fake: FakeS3) -> None:
    open_store("s3://bucket/w", fake.options)
    probing = len(fake.requests)
    assert probing > 0
    open_store("s3://bucket/other", fake.options)
    assert len(fake.requests) == probing
    open_store("s3://bucket2/w", fake.options)
    assert len(fake.requests) > probing


def test_who_may_only_read_opens_a_warehouse_without_the_probe(fake: FakeS3) -> None:
    fake.objects["/bucket/w/x"] = b"1"
    fake.read_only = True
    assert open_store("s3://bucket/w", fake.options).get("x") == b"1"
