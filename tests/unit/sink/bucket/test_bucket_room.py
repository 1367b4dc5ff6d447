"""How dynamic buckets fill up, against one key after the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import InvalidError
from lakelet.sink.bucket.bucket_room import MOST_BUCKETS, BucketRoom


def one_by_one(counts: dict[int, int], keys: int, *, target: int, most: int, first: int, step: int) -> list[int]:
    own = {bucket: count for bucket, count in counts.items() if bucket % step == first}
    taken = []
    for _ in range(keys):
        roomy = [bucket for bucket in sorted(own) if own[bucket] < target]
        free = [bucket for bucket in range(first, 1000 if most < 0 else most, step) if bucket not in own]
        if roomy:
            bucket = roomy[0]
        elif free:
            bucket = free[0]
        else:
            bucket = min(own, key=lambda known: (own[known], known))
        own[bucket] = own.get(bucket, 0) + 1
        taken.append(bucket)
    return taken


@given(
    counts=st.dictionaries(st.integers(0, 12), st.integers(0, 9), max_size=8),
    takes=st.lists(st.integers(0, 25), max_size=6),
    target=st.integers(1, 6),
    most=st.sampled_from([-1, 1, 2, 3, 7]),
    step=st.integers(1, 3),
    data=st.data(),
)
def test_keys_go_where_one_after_the_other_would(
    counts: dict[int, int], takes: list[int], target: int, most: int, step: int, data: st.DataObject
) -> None:
    step = step if most < 0 else min(step, most)
    first = data.draw(st.integers(0, step - 1))
    room = BucketRoom(counts, target=target, most=most, first=first, step=step)
    found = [bucket for count in takes for bucket in room.take(count).tolist()]
    assert found == one_by_one(counts, sum(takes), target=target, most=most, first=first, step=step)


def test_beyond_the_greatest_bucket_there_is_an_error() -> None:
    room = BucketRoom({}, target=1)
    assert room.take(MOST_BUCKETS).tolist() == list(range(MOST_BUCKETS))
    with pytest.raises(InvalidError, match="target-row-num"):
        room.take(1)


def test_many_keys_at_once_are_shared_out_evenly_once_all_buckets_are_full() -> None:
    room = BucketRoom({}, target=10, most=3)
    buckets = room.take(1_000_000).tolist()
    assert [buckets.count(bucket) for bucket in range(3)] == [333_334, 333_333, 333_333]
