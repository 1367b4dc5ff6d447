"""Splits stay where their bytes are cached, and no worker has much more than the others."""

from lakelet.cluster.affinity import assigned_splits, ranked_workers

_SPLITS = [(f"bucket-{number % 7}/data-{number}.parquet+1", 100 + number) for number in range(300)]


def _owners(workers: list[str]) -> dict[str, str]:
    return {name: worker for worker, names in assigned_splits(_SPLITS, workers).items() for name in names}


def test_every_split_is_read_once_and_loads_are_alike() -> None:
    found = assigned_splits(_SPLITS, ["a", "b", "c"])
    assert sorted(name for names in found.values() for name in names) == sorted(name for name, _ in _SPLITS)
    sizes = dict(_SPLITS)
    loads = [sum(sizes[name] for name in names) for names in found.values()]
    assert max(loads) <= 1.25 * sum(loads) / 3


def test_most_splits_stay_where_they_were() -> None:
    before, after = _owners(["a", "b", "c"]), _owners(["a", "b", "c", "d"])
    moved = [name for name in before if before[name] != after[name]]
    assert len(moved) < len(before) * 0.45
    assert _owners(["c", "b", "a"]) == before


def test_large_splits_are_no_reason_to_leave_others_out() -> None:
    found = assigned_splits([("large", 1000), ("one", 1), ("two", 1)], ["a", "b"])
    assert sorted(map(sorted, found.values())) == [["large"], ["one", "two"]]
    assert assigned_splits([], ["a"]) == {}
    assert assigned_splits([("one", 0)], ["a", "b"]).keys() <= {"a", "b"}
    assert sorted(ranked_workers("one", ["a", "b", "c"])) == ["a", "b", "c"]
