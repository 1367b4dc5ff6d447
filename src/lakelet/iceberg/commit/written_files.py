"""Check that the files a writer reports are data files of its insert.

A commit that names a file of deletes, a manifest or a file of another spec as data hides rows or shows wrong ones, and no
engine would find out before it reads them. So everything that can be seen without opening the file is checked, before anything
is committed; the contents of the file are its writer's responsibility, which counted the rows as it wrote them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lakelet.errors import InvalidError
from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.write.write_plan import WritePlan

_DATA = "DATA"


def check_written(plan: WritePlan, data: Iterable[CommitData], known: Collection[str] = ()) -> None:
    """InvalidError where a file is no data file of the plan, or was reported before (`known`)."""
    seen = set(known)
    fields = len(plan.spec.fields)
    for one in data:
        where = f"table {plan.table}: file {one.file_path}"
        if one.file_content != _DATA:
            raise InvalidError(f"{where}: expected a file of {_DATA}, found {one.file_content}")
        if not one.file_path.lower().endswith(f".{plan.file_format}"):
            raise InvalidError(
                f"{where}: expected a name that ends in .{plan.file_format}, as all files of this insert have"
            )
        if one.spec_id != plan.partition_spec_id:
            raise InvalidError(f"{where}: expected partition spec {plan.partition_spec_id}, found {one.spec_id}")
        if len(one.partition_values) != fields:
            raise InvalidError(f"{where}: expected {fields} partition values, found {len(one.partition_values)}")
        if one.row_count < 1 or one.file_size < 1:
            raise InvalidError(f"{where}: expected rows, found {one.row_count} in {one.file_size} bytes")
        if one.file_path in seen:
            raise InvalidError(f"{where} was told of before: its rows would be there twice")
        seen.add(one.file_path)
