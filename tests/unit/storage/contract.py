"""What every object store must do. A backend's test class inherits this and gives a fixture `store`.

The S3 backends inherit it in tests/integration/storage.
"""

import gc
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, NotFoundError
from lakelet.storage.store import ObjectStore, OutputFile

# Names that partition values and table names produce, escaped and not.
AWKWARD_NAMES = [
    "dt=2026-01-01",
    "a%3Ab",
    "sp ace",
    "é",
    "日本",
    "a+b",
    "a#b",
    "a?b",
    "a&b",
    "k=",
    "a~b",
    "a%zz",
    "x:y",
]
BAD_PATHS = ["", "/abs", "a//b", "a/", "../x", "a/../b", "a/./b", "nul\0", "tab\t", "back\\slash"]


class StoreContract:
    """The suite; `racers` is how many threads compete where that matters, `folders_vanish` says that a folder
    goes with its last object."""

    racers = 16
    folders_vanish = True

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError

    def test_what_was_put_is_read_back(self, store: ObjectStore) -> None:
        store.put("a/b", b"one")
        assert store.get("a/b") == b"one"
        store.put("a/b", b"second")
        assert store.get("a/b") == b"second"
        store.put("empty", b"")
        assert store.get("empty") == b""

    def test_a_deferred_write_is_seen_at_once_and_can_be_synced(self, store: ObjectStore) -> None:
        store.put("new/put", b"one", deferred=True)
        with store.open_output("new/p=1/streamed", deferred=True) as output:
            output.write(b"two")
        assert [store.get(info.path) for info in store.list("new")] == [b"two", b"one"]
        store.put("durable", b"three")
        store.sync(["new/put", "new/p=1/streamed", "durable"])
        store.sync(["new/put"])
        store.sync([])
        assert [store.get(info.path) for info in store.list("")] == [b"three", b"two", b"one"]
        store.put("new/put", b"four", deferred=True)
        assert store.get("new/put") == b"four"
        store.delete(["new/put"])
        store.sync(["new/put"])
        assert store.head("new/put") is None

    def test_a_deferred_write_that_is_given_up_leaves_nothing(self, store: ObjectStore) -> None:
        with store.open_output("new/given-up", deferred=True) as output:
            output.write(b"half")
            output.abort()
        assert list(store.list("")) == []

    def test_a_large_object_comes_back_whole(self, store: ObjectStore) -> None:
        data = bytes(range(256)) * (20 * 4096)
        store.put("large", data)
        assert store.get("large") == data
        assert store.get_range("large", 9 * 2**20, 256) == data[:256]

    def test_reading_what_is_absent_names_it(self, store: ObjectStore) -> None:
        for read in (store.get, lambda path: store.get_range(path, 0, 1), lambda path: store.get_range(path, 0, 0)):
            with pytest.raises(NotFoundError) as raised:
                read("no/such")
            assert "no/such" in str(raised.value)
            assert store.location in str(raised.value)

    def test_a_range_is_exact_or_an_error(self, store: ObjectStore) -> None:
        store.put("r", b"0123456789")
        assert store.get_range("r", 0, 10) == b"0123456789"
        assert store.get_range("r", 3, 4) == b"3456"
        assert store.get_range("r", 9, 1) == b"9"
        assert store.get_range("r", 10, 0) == b""
        for start, length in ((0, 11), (9, 2), (10, 1), (100, 1), (11, 0), (-1, 1), (0, -1)):
            with pytest.raises(CorruptionError, match=r"/r\b"):
                store.get_range("r", start, length)

    def test_head_tells_the_size_and_knows_no_folders(self, store: ObjectStore) -> None:
        assert store.head("h/x") is None
        store.put("h/x", b"12345")
        info = store.head("h/x")
        assert info is not None
        assert (info.path, info.size) == ("h/x", 5)
        assert info.modified_ms > 1_500_000_000_000
        assert store.head("h") is None
        assert store.head("h/x/below") is None

    def test_put_if_absent_creates_once(self, store: ObjectStore) -> None:
        assert store.put_if_absent("s/snapshot-1", b"first")
        assert not store.put_if_absent("s/snapshot-1", b"second")
        assert store.get("s/snapshot-1") == b"first"
        store.put("s/put", b"x")
        assert not store.put_if_absent("s/put", b"y")
        store.delete(["s/put"])
        assert store.put_if_absent("s/put", b"z")
        assert store.get("s/put") == b"z"

    def test_rule_1_of_racing_creates_one_wins_and_its_bytes_stand(self, store: ObjectStore) -> None:
        for round_number in range(3):
            path = f"race/snapshot-{round_number}"
            barrier = threading.Barrier(self.racers)

            def create(racer: int, path: str = path, barrier: threading.Barrier = barrier) -> bool:
                barrier.wait()
                return store.put_if_absent(path, b"by %d" % racer)

            with ThreadPoolExecutor(self.racers) as pool:
                won = list(pool.map(create, range(self.racers)))
            assert won.count(True) == 1
            assert store.get(path) == b"by %d" % won.index(True)
        assert [info.path for info in store.list("race")] == [f"race/snapshot-{n}" for n in range(3)]

    def test_racing_puts_leave_one_whole_object(self, store: ObjectStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: store.put("hint/LATEST", b"%d" % n * 1000), range(8)))
        kept = store.get("hint/LATEST")
        assert kept in {b"%d" % n * 1000 for n in range(8)}
        assert [info.path for info in store.list("hint")] == ["hint/LATEST"]

    def test_list_goes_down_and_sorts_by_path(self, store: ObjectStore) -> None:
        for path in ("t/b", "t/a/2", "t/a/1/x", "t/a.b", "ta/no", "t/z/y"):
            store.put(path, b"123")
        listed = list(store.list("t"))
        assert [info.path for info in listed] == ["t/a.b", "t/a/1/x", "t/a/2", "t/b", "t/z/y"]
        assert {info.size for info in listed} == {3}
        assert [info.path for info in store.list("")] == ["t/a.b", "t/a/1/x", "t/a/2", "t/b", "t/z/y", "ta/no"]
        assert [info.path for info in store.list("t/a/1")] == ["t/a/1/x"]

    def test_listing_what_is_absent_or_no_folder_is_empty(self, store: ObjectStore) -> None:
        store.put("f/file", b"1")
        for folder in ("nothing", "f/none", "f/file"):
            assert list(store.list(folder)) == []
            listing = store.list_folder(folder)
            assert (listing.files, listing.folders) == ((), ())

    def test_list_folder_shows_one_level(self, store: ObjectStore) -> None:
        for path in ("t/b", "t/a/2", "t/a/1/x", "t/a.b", "top"):
            store.put(path, b"1")
        listing = store.list_folder("t")
        assert [info.path for info in listing.files] == ["t/a.b", "t/b"]
        assert listing.folders == ("t/a",)
        root = store.list_folder("")
        assert [info.path for info in root.files] == ["top"]
        assert root.folders == ("t",)

    def test_hidden_names_are_read_but_never_listed(self, store: ObjectStore) -> None:
        for path in ("t/.hidden", "t/.folder-x/file", "t/seen"):
            store.put(path, b"1")
        assert store.get("t/.hidden") == b"1"
        assert [info.path for info in store.list("t")] == ["t/seen"]
        listing = store.list_folder("t")
        assert [info.path for info in listing.files] == ["t/seen"]
        assert listing.folders == ()

    def test_delete_removes_and_takes_absent_ones(self, store: ObjectStore) -> None:
        paths = [f"d/{number:03}" for number in range(25)]
        for path in paths:
            store.put(path, b"1")
        store.delete([*paths[:20], "d/none", "none/at/all"])
        assert [info.path for info in store.list("d")] == paths[20:]
        store.delete([])
        store.delete(paths)
        assert list(store.list("d")) == []

    def test_copy_writes_the_same_bytes_and_replaces(self, store: ObjectStore) -> None:
        store.put("from", b"new")
        store.put("to/x", b"old")
        store.copy("from", "to/x")
        assert store.get("to/x") == b"new"
        assert store.get("from") == b"new"
        with pytest.raises(NotFoundError):
            store.copy("absent", "to/y")
        assert store.head("to/y") is None

    def test_a_made_folder_shows_and_is_empty(self, store: ObjectStore) -> None:
        store.make_folder("w/shop.db")
        store.make_folder("w/shop.db")
        assert store.list_folder("").folders == ("w",)
        assert store.list_folder("w").folders == ("w/shop.db",)
        inside = store.list_folder("w/shop.db")
        assert (inside.files, inside.folders) == ((), ())
        assert list(store.list("")) == []

    def test_delete_folder_takes_everything_below(self, store: ObjectStore) -> None:
        store.make_folder("w/t/empty")
        for path in ("w/t/a", "w/t/.hidden", "w/t/b/c", "w/t2/keep"):
            store.put(path, b"1")
        store.delete_folder("w/t")
        store.delete_folder("w/t")
        assert store.list_folder("w").folders == ("w/t2",)
        assert store.head("w/t/.hidden") is None
        assert [info.path for info in store.list("")] == ["w/t2/keep"]
        store.put("w/t/again", b"1")
        assert [info.path for info in store.list("w/t")] == ["w/t/again"]

    def test_only_an_empty_folder_is_removed(self, store: ObjectStore) -> None:
        store.put("e/full/x", b"1")
        store.put("e/hidden/.x", b"1")
        store.put("e/empty/x", b"1")
        store.delete(["e/empty/x"])
        assert not store.remove_empty_folder("e/full")
        assert not store.remove_empty_folder("e/hidden")
        assert not store.remove_empty_folder("e/absent")
        store.remove_empty_folder("e/empty")
        assert not self.folders_vanish or "e/empty" not in store.list_folder("e").folders
        assert store.get("e/full/x") == store.get("e/hidden/.x") == b"1"

    def test_objects_are_no_leftovers(self, store: ObjectStore) -> None:
        store.put("l/x", b"1")
        assert store.remove_leftovers("l", older_than_ms=2**62) == ()
        assert store.get("l/x") == b"1"

    def test_move_folder_moves_everything(self, store: ObjectStore) -> None:
        for path in ("m/t/a", "m/t/b/c", "m/t2/stays"):
            store.put(path, path.encode())
        store.move_folder("m/t", "n/u")
        assert [info.path for info in store.list("")] == ["m/t2/stays", "n/u/a", "n/u/b/c"]
        assert store.get("n/u/b/c") == b"m/t/b/c"
        assert store.list_folder("m").folders == ("m/t2",)
        store.put("m/t/new", b"1")
        assert [info.path for info in store.list("m/t")] == ["m/t/new"]

    def test_move_folder_refuses(self, store: ObjectStore) -> None:
        store.put("m/a/x", b"1")
        store.put("m/b/y", b"2")
        store.put("m/file", b"3")
        for target in ("m/b", "m/file"):
            with pytest.raises(AlreadyExistsError):
                store.move_folder("m/a", target)
        with pytest.raises(NotFoundError):
            store.move_folder("m/none", "m/c")
        with pytest.raises(InvalidError):
            store.move_folder("m/a", "m/a/b")
        assert [info.path for info in store.list("m")] == ["m/a/x", "m/b/y", "m/file"]

    def test_an_output_file_appears_when_closed(self, store: ObjectStore) -> None:
        output = store.open_output("o/file")
        assert isinstance(output, OutputFile)
        output.write(b"abc")
        output.write(b"defg")
        assert output.tell() == 7
        output.flush()
        assert store.head("o/file") is None
        assert list(store.list("o")) == []
        closed_before = output.closed
        output.close()
        output.close()
        output.abort()
        assert (closed_before, output.closed) == (False, True)
        assert store.get("o/file") == b"abcdefg"
        assert [info.path for info in store.list("")] == ["o/file"]

    def test_an_output_file_replaces(self, store: ObjectStore) -> None:
        store.put("o/file", b"old")
        with store.open_output("o/file") as output:
            output.write(b"new")
            assert store.get("o/file") == b"old"
        assert store.get("o/file") == b"new"

    def test_an_aborted_output_file_leaves_nothing(self, store: ObjectStore) -> None:
        output = store.open_output("o/gone")
        output.write(b"abc")
        output.abort()
        output.abort()
        output.close()
        with suppress(ZeroDivisionError), store.open_output("o/gone") as second:
            second.write(b"%d" % (1 // len(list(store.list("o")))))
        forgotten = store.open_output("o/gone")
        forgotten.write(b"abc")
        del forgotten
        assert store.head("o/gone") is None
        assert list(store.list("")) == []

    def test_a_large_output_file_comes_back_whole(self, store: ObjectStore) -> None:
        piece = bytes(range(256)) * 4096
        with store.open_output("o/large") as output:
            for _ in range(20):
                output.write(piece)
        assert store.get("o/large") == piece * 20

    def test_parquet_is_written_and_read_through_the_store(self, store: ObjectStore) -> None:
        table = pa.table({"id": range(100_000), "name": [f"n{number % 97}" for number in range(100_000)]})
        with store.open_output("p/dt=a%3Ab/data.parquet") as output, pq.ParquetWriter(output, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=10_000):
                writer.write_batch(batch)
        filesystem, path = store.arrow_path("p/dt=a%3Ab/data.parquet")
        assert pq.read_table(path, filesystem=filesystem, partitioning=None).equals(table)
        dataset = ds.dataset([path], filesystem=filesystem, format="parquet")
        assert dataset.to_table(filter=ds.field("id") >= 99_990, columns=["id"]).num_rows == 10
        assert dataset.count_rows() == 100_000

    def test_an_abandoned_parquet_writer_publishes_nothing(self, store: ObjectStore) -> None:
        output = store.open_output("p/half.parquet")
        writer = pq.ParquetWriter(output, pa.schema([("id", pa.int64())]))
        writer.write_table(pa.table({"id": [1]}))
        del writer
        gc.collect()
        assert store.head("p/half.parquet") is None
        output.abort()
        del output
        gc.collect()
        assert store.head("p/half.parquet") is None

    def test_a_missing_file_is_an_error_for_pyarrow_too(self, store: ObjectStore) -> None:
        filesystem, path = store.arrow_path("p/none.parquet")
        with pytest.raises(FileNotFoundError):
            filesystem.open_input_file(path)

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_awkward_names_are_kept_as_they_are(self, store: ObjectStore, name: str) -> None:
        path = f"n/{name}/{name}"
        assert store.put_if_absent(path, name.encode())
        assert store.get(path) == name.encode()
        assert [info.path for info in store.list("n")] == [path]
        assert store.list_folder("n").folders == (f"n/{name}",)
        filesystem, arrow_path = store.arrow_path(path)
        with filesystem.open_input_file(arrow_path) as file:
            assert file.read() == name.encode()
        store.delete([path])
        assert list(store.list("n")) == []

    @pytest.mark.parametrize(
        "path", ["", "/abs", "a//b", "a/", "../x", "a/../b", "a/./b", "nul\0", "tab\t", "back\\slash"]
    )
    def test_bad_paths_are_refused_everywhere(self, store: ObjectStore, path: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(path),
            lambda: store.get_range(path, 0, 1),
            lambda: store.head(path),
            lambda: store.put(path, b""),
            lambda: store.put_if_absent(path, b""),
            lambda: store.delete([path]),
            lambda: store.copy(path, "x"),
            lambda: store.copy("x", path),
            lambda: store.delete_folder(path),
            lambda: store.move_folder(path, "x"),
            lambda: store.move_folder("x", path),
            lambda: store.open_output(path),
            lambda: store.arrow_path(path),
        ]
        if path:
            calls += [
                lambda: list(store.list(path)),
                lambda: store.list_folder(path),
                lambda: store.make_folder(path),
            ]
        store.put("x", b"1")
        for call in calls:
            with pytest.raises(InvalidError):
                call()
        assert [info.path for info in store.list("")] == ["x"]

    def test_a_pickled_store_reads_the_same_objects(self, store: ObjectStore) -> None:
        store.put("p", b"1")
        again: ObjectStore = pickle.loads(pickle.dumps(store))
        assert again.location == store.location
        assert again.get("p") == b"1"
        assert not again.put_if_absent("p", b"2")
