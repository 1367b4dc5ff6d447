"""How compaction tasks are assigned to Spark tasks."""

from lakelet.compact.task import CompactionTask
from lakelet.spark.jobs.compact_tasks import balanced_tasks
from tests.unit.lsm.bucket_files import data_file


def tasks_of(*sizes: int) -> list[CompactionTask]:
    return [CompactionTask(1, b"", bucket, 9, (data_file(f"f{bucket}", 0, size),)) for bucket, size in enumerate(sizes)]


def test_large_buckets_come_first_and_small_ones_share() -> None:
    parts = [[task.bucket for task in part] for part in balanced_tasks(tasks_of(1, 50, 2, 3, 90, 1), 3)]
    assert parts == [[4], [1], [3, 2, 0, 5]]


def test_there_are_no_empty_parts() -> None:
    tasks = tasks_of(5)
    assert balanced_tasks(tasks, 3) == [tasks]
