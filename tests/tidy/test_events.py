"""Who changes schemas, snapshots or tags of a table publishes it."""

import re
from pathlib import Path

from tests.tidy.sources import python_files, text_of

NAMES_METADATA = re.compile(
    r"paths\.(?:schema|snapshot|tag)\(|paths\.(?:schema_folder|snapshot_folder|tag_folder|branch_root)\b"
)
CHANGES = re.compile(r"store\.(?:put|put_if_absent|delete|delete_folder|move_folder|copy)\(|\bput_new\(")
ALLOWED = (
    # Hints at snapshots, which say nothing that a reader does not check.
    Path("src/lakelet/commit/metadata/snapshots.py"),
    # What readers of a table have read so far.
    Path("src/lakelet/commit/versions/consumers.py"),
    # Folders of a table that is gone.
    Path("src/lakelet/commit/dropped_table.py"),
)


def test_whoever_changes_metadata_publishes() -> None:
    silent = [
        path
        for path in python_files("src")
        if (text := text_of(path)) is not None
        and NAMES_METADATA.search(text)
        and CHANGES.search(text)
        and "from lakelet.events import" not in text
        and path not in ALLOWED
    ]
    assert silent == []
