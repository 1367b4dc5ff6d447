import pytest

from lakelet.errors import CorruptionError
from lakelet.iceberg.scan.delete_index import DeleteIndex, PlacedDelete
from lakelet.iceberg.scan.scan_file import EQUALITY, POSITIONS, VECTOR, DeleteFile


def _delete(kind: str, path: str = "d", **more: object) -> PlacedDelete:
    place = {"offset": 4, "length": 40} if kind == VECTOR else {}
    file = DeleteFile(path, kind, "PUFFIN" if kind == VECTOR else "PARQUET", 10, 1, **place)
    given = {"sequence_number": 5, "spec_id": 0, "partition": (1,), **more}
    return PlacedDelete(file, **given)  # type: ignore[arg-type]


def _index(*deletes: PlacedDelete) -> DeleteIndex:
    made = DeleteIndex()
    for delete in deletes:
        made.add(delete)
    return made


def _found(
    index: DeleteIndex, *, path: str = "a", spec: int = 0, partition: tuple[object, ...] = (1,), number: int = 5
) -> list[str]:
    return [one.path for one in index.of(path, spec, partition, number)]


@pytest.mark.parametrize(
    ("kind", "number", "falls"),
    [
        *((POSITIONS, 4, True), (POSITIONS, 5, True), (POSITIONS, 6, False)),
        *((EQUALITY, 4, True), (EQUALITY, 5, False), (EQUALITY, 6, False)),
    ],
)
def test_sequence_numbers(kind: str, number: int, falls: bool) -> None:
    assert bool(_found(_index(_delete(kind)), number=number)) == falls


@pytest.mark.parametrize("kind", [POSITIONS, EQUALITY])
def test_partitions(kind: str) -> None:
    index = _index(_delete(kind))
    assert _found(index, number=1) == ["d"]
    assert _found(index, number=1, partition=(2,)) == []
    assert _found(index, number=1, spec=1) == []


def test_equality_without_a_partition_falls_on_all_specs_and_positions_do_not() -> None:
    index = _index(
        _delete(EQUALITY, "e", partition=(), is_global=True), _delete(POSITIONS, "p", partition=(), is_global=True)
    )
    assert _found(index, number=1, spec=3, partition=(9,)) == ["e"]
    assert sorted(_found(index, number=1, partition=())) == ["e", "p"]


def test_a_delete_that_names_its_file_falls_on_no_other() -> None:
    index = _index(_delete(POSITIONS, referenced="a"), _delete(POSITIONS, "bounded", lowest=b"b", highest=b"c"))
    assert _found(index) == ["d"]
    assert _found(index, path="b") == ["bounded"]
    assert _found(index, path="ca") == []


def test_a_vector_replaces_positions_but_not_equality() -> None:
    index = _index(_delete(POSITIONS, "p"), _delete(VECTOR, "v", referenced="a"), _delete(EQUALITY, "e"))
    assert _found(index, number=4) == ["v", "e"]
    assert _found(index, path="b", number=4) == ["p", "e"]


def test_two_vectors_of_a_file_are_damage() -> None:
    index = _index(_delete(VECTOR, "v", referenced="a"), _delete(VECTOR, "w", referenced="a"))
    with pytest.raises(CorruptionError, match="a has 2 deletion vectors"):
        _found(index)


def test_a_vector_without_a_place_is_damage() -> None:
    with pytest.raises(CorruptionError, match="does not say of which file"):
        _index(_delete(VECTOR))
