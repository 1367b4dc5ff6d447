"""Metadata of tables is read behind one door: only these modules decode its files or fetch them from the store."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import python_files, tree_of

DECODERS = frozenset(
    {
        "decode_index_manifest",
        "decode_manifest",
        "decode_manifest_list",
        "decode_schema",
        "decode_snapshot",
        "decode_tag",
        "tagged_snapshot_bytes",
    }
)
METADATA_PATHS = frozenset({"manifest", "schema", "snapshot", "tag"})
ALLOWED = (
    # The door itself: decoded, and as bytes.
    Path("src/lakelet/commit/metadata/uncached.py"),
    Path("src/lakelet/commit/metadata/stored.py"),
    # It compares the bytes of pointers with those that a cache holds.
    Path("src/lakelet/commit/metadata/pointers.py"),
    # It compares sizes and counts of what the bytes say with each other.
    Path("src/lakelet/commit/metadata/metadata_check.py"),
    # It decodes manifest lists that it has encoded itself.
    Path("src/lakelet/catalog/metadata_cache/native_codec.py"),
    # It decodes snapshots out of a record of its own.
    Path("src/lakelet/commit/retention/expiry_record.py"),
    # It decodes the copies of a source's metadata that a backup keeps beside its mirror.
    Path("src/lakelet/service/backup/pass_changes.py"),
)
# The same of Iceberg tables: what opens their metadata files, by the names of pyiceberg's functions and our own.
ICEBERG_READERS = frozenset(
    {"FromInputFile", "fetch_manifest_entry", "load_table", "read_entries", "read_manifest_list"}
)
ICEBERG_ALLOWED = (
    Path("src/lakelet/iceberg/metadata/uncached.py"),
    # It asks a catalog for the newest version of a table.
    Path("src/lakelet/iceberg/metadata/table_pointer.py"),
    # It asks whether there is a table, of whose metadata it takes nothing.
    Path("src/lakelet/iceberg/catalog/iceberg_catalog.py"),
)


def past_the_iceberg_door(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names = [node.attr] if isinstance(node, ast.Attribute) else []
        names += [name.name for name in node.names] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name in ICEBERG_READERS:
                yield f"{node.lineno}: {name}; ask the table's source"


def test_only_the_iceberg_door_reads_metadata() -> None:
    others = [path for path in python_files("src/lakelet/iceberg") if path not in ICEBERG_ALLOWED]
    found = [f"{path}:{finding}" for path in others for finding in past_the_iceberg_door(tree_of(path))]
    assert not found, "\n" + "\n".join(found)
    assert [path for path in ICEBERG_ALLOWED if not list(past_the_iceberg_door(tree_of(path)))] == []


def past_the_door(tree: ast.Module) -> Iterator[str]:
    """Decoders of metadata by name, and `store.get` of a metadata path."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                if name.name in DECODERS:
                    yield f"{node.lineno}: imports {name.name}; ask lakelet.commit.metadata.source"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            for argument in node.args:
                if (
                    isinstance(argument, ast.Call)
                    and isinstance(argument.func, ast.Attribute)
                    and argument.func.attr in METADATA_PATHS
                    and ast.unparse(argument.func.value).endswith("paths")
                ):
                    yield f"{node.lineno}: reads {ast.unparse(argument)}; ask lakelet.commit.metadata.source"


def test_only_the_door_reads_metadata() -> None:
    others = [
        path for path in python_files("src") if path not in ALLOWED and not path.is_relative_to("src/lakelet/format")
    ]
    found = [f"{path}:{finding}" for path in others for finding in past_the_door(tree_of(path))]
    assert not found, "\n" + "\n".join(found)


def test_every_allowed_module_still_needs_to_be() -> None:
    assert [path for path in ALLOWED if not list(past_the_door(tree_of(path)))] == []


@pytest.mark.parametrize(
    "code",
    [
        "from lakelet.format.metadata.snapshot_json import decode_snapshot",
        "from lakelet.format.manifest.manifest_file import decode_manifest as decode",
        "data = home.store.get(home.paths.schema(3))",
        "data = self._home.store.get(self._home.on_branch('b').paths.tag('x'))",
    ],
)
def test_it_is_found(code: str) -> None:
    assert list(past_the_door(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "from lakelet.format.metadata.snapshot_json import encode_snapshot",
        "data = home.store.get(home.paths.index('x'))",
        "home.store.delete([home.paths.schema(3)])",
    ],
)
def test_it_is_left_alone(code: str) -> None:
    assert not list(past_the_door(ast.parse(code)))
