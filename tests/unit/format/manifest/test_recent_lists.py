"""Lists remembered by their bytes."""

from lakelet.format.manifest import manifest_avro
from lakelet.format.manifest.manifest_file import decode_manifest_list, encode_manifest_list
from lakelet.format.manifest.recent_lists import RecentLists
from lakelet.model.data_file import Stats
from lakelet.model.manifest import ManifestFile


def manifest(number: int) -> ManifestFile:
    return ManifestFile(f"manifest-{number}", number, 1, 0, Stats(b"a", b"b", (number, None)), 0, 0, 3, None, None)


def test_what_is_used_stays_and_the_rest_goes() -> None:
    recent = RecentLists()
    for number in range(100):
        recent.put(str(number).encode(), [manifest(number)])
        assert recent.get(b"0") == (manifest(0),)
    assert recent.get(b"99") == (manifest(99),)
    assert recent.get(b"1") is None
    assert recent.get(b"another") is None


def test_long_lists_are_not_kept() -> None:
    recent = RecentLists()
    recent.put(b"long", [manifest(number) for number in range(1000)])
    assert recent.get(b"long") is None


def test_a_list_that_was_just_written_is_what_a_reader_decodes() -> None:
    manifests = [manifest(number) for number in range(3)]
    data = encode_manifest_list(manifests, manifest_format="avro", compression="zstd")
    found = decode_manifest_list(data, path="l")
    assert found == manifests == manifest_avro.decode_manifests(data, path="l")
    # Each reader has a list of its own.
    found.clear()
    assert decode_manifest_list(data, path="l") == manifests
