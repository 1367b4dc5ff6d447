"""Reading tags: a tag is a snapshot kept under a name."""

from __future__ import annotations

from lakelet.errors import NotFoundError
from lakelet.format.snapshot_json import decode_snapshot
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome

_PREFIX = "tag-"


def tag_names(home: TableHome) -> list[str]:
    """The names of all tags, sorted."""
    files = home.store.list_folder(home.paths.tag_folder).files
    names = [info.path.rsplit("/", 1)[-1] for info in files]
    return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))


def read_tag(home: TableHome, name: str) -> Snapshot:
    """The snapshot a tag keeps."""
    path = home.paths.tag(name)
    try:
        return decode_snapshot(home.store.get(path), path=home.where(path))
    except NotFoundError as error:
        there = ", ".join(tag_names(home)) or "none"
        raise NotFoundError(
            f"tag {name!r} is not in {home.where(home.paths.branch_root)}; its tags: {there}"
        ) from error
