"""The JSON form of manifests has the keys people look for."""

import base64
import json

from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.manifest.manifest_file import decode_manifest, encode_manifest, encode_manifest_list
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import EntryKind, ManifestEntry, ManifestFile

FILE = DataFile("data-0.parquet", 100, 10, EMPTY_ROW, EMPTY_ROW, NO_STATS, Stats(b"a", b"b", (1, None)), 0, 9, 0, 2)
EMPTY = base64.b64encode(EMPTY_ROW).decode()


def test_entries() -> None:
    entries = [ManifestEntry(EntryKind.DELETE, EMPTY_ROW, 0, -1, FILE)]
    value = json.loads(encode_manifest(entries_to_columns(entries), manifest_format="json", compression="zstd"))
    assert list(value) == ["entries"]
    (entry,) = value["entries"]
    assert list(entry)[:6] == ["kind", "file", "level", "minKey", "maxKey", "rowCount"]
    assert (entry["kind"], entry["file"], entry["level"], entry["rowCount"]) == ("DELETE", "data-0.parquet", 2, 10)
    assert entry["minKey"] == entry["partition"] == EMPTY
    assert entry["valueStats"] == {"min": "YQ==", "max": "Yg==", "nullCounts": [1, None]}
    # What is not known is left out.
    assert "creationTime" not in entry
    assert "externalPath" not in entry


def test_a_list_names_its_manifests_by_path() -> None:
    value = json.loads(
        encode_manifest_list(
            [ManifestFile("manifest-0", 10, 1, 2, NO_STATS, 3)], manifest_format="json", compression="zstd"
        )
    )
    assert value["manifestFiles"] == ["manifest/manifest-0"]
    (manifest,) = value["manifests"]
    assert (manifest["size"], manifest["addedFiles"], manifest["deletedFiles"], manifest["schemaId"]) == (10, 1, 2, 3)
    assert manifest["partitionStats"] == {"min": EMPTY, "max": EMPTY, "nullCounts": []}


def test_entries_with_just_the_plain_keys_can_be_read() -> None:
    text = {"kind": "ADD", "file": "data-0.parquet", "level": 0, "minKey": EMPTY, "maxKey": EMPTY, "rowCount": 7}
    found = decode_manifest(json.dumps({"entries": [text]}).encode(), path="m")
    assert found.column("_ROW_COUNT").to_pylist() == [7]
    assert found.column("_FILE_SIZE").to_pylist() == [None]
