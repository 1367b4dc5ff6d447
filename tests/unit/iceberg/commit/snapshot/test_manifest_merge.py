"""Which manifests are merged."""

from __future__ import annotations

from lakelet.iceberg.commit.snapshot.manifest_merge import ManifestSize, merge_groups


def test_few_manifests_stay() -> None:
    assert merge_groups([ManifestSize(0, 100, 1)] * 3, 4, 10_000) == []


def test_a_full_class_becomes_one() -> None:
    assert merge_groups([ManifestSize(0, 100, 1)] * 4, 4, 10_000) == [[0, 1, 2, 3]]


def test_classes_and_specs_stay_apart() -> None:
    sizes = [ManifestSize(0, 100, 1), ManifestSize(0, 400, 4), ManifestSize(1, 100, 1), ManifestSize(0, 100, 3)]
    assert merge_groups(sizes, 2, 10_000) == []
    assert merge_groups([*sizes, ManifestSize(0, 100, 1)], 2, 10_000) == [[0, 4]]


def test_manifests_of_the_target_size_stay_and_groups_end_there() -> None:
    sizes = [ManifestSize(0, 600, 1)] * 4 + [ManifestSize(0, 1000, 2)]
    assert merge_groups(sizes, 4, 1000) == []
    assert merge_groups(sizes, 4, 1200) == [[0, 1], [2, 3]]


def test_a_thousand_appends_leave_few_and_write_each_entry_few_times() -> None:
    manifests: list[ManifestSize] = []
    written = 0
    most = 0
    for _ in range(1000):
        for group in merge_groups(manifests, 10, 1 << 20):
            merged = ManifestSize(
                0, sum(manifests[at].length for at in group), sum(manifests[at].files for at in group)
            )
            manifests = [one for at, one in enumerate(manifests) if at not in group] + [merged]
            written += merged.files
        manifests.append(ManifestSize(0, 100, 1))
        most = max(most, len(manifests))
    assert sum(one.files for one in manifests) == 1000
    assert most <= 31
    assert written <= 3 * 1000
