"""Typed access to a table's options, and the checks at create, alter and open."""

import pickle
from datetime import timedelta

import pytest

from lakelet.errors import InvalidError
from lakelet.options import (
    BUCKET,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
    FIELD_STATS_MODE,
    FILE_COMPRESSION_PER_LEVEL,
    MANIFEST_TARGET_FILE_SIZE,
    SCAN_MODE,
    TABLE_OPTIONS,
    TARGET_FILE_SIZE,
    TableOptions,
    check_alter,
    check_connection,
    check_options,
    check_stored,
)


class TestTableOptions:
    def test_get_applies_defaults(self) -> None:
        options = TableOptions()
        assert options.get(BUCKET) == -1
        assert options.get(COMMIT_MIN_RETRY_WAIT) == timedelta(milliseconds=10)
        assert options.get(COMMIT_TIMEOUT) is None
        assert options.get(TARGET_FILE_SIZE) is None
        assert options.get(FILE_COMPRESSION_PER_LEVEL) == {}

    def test_get_parses(self) -> None:
        options = TableOptions({"bucket": "4", "manifest.target-file-size": "1 mb"})
        assert options.get(BUCKET) == 4
        assert options.get(MANIFEST_TARGET_FILE_SIZE) == 1 << 20

    def test_get_reads_an_older_name_unless_the_new_one_is_set(self) -> None:
        assert TableOptions({"log.scan": "latest"}).get(SCAN_MODE) == "latest"
        assert TableOptions({"log.scan": "latest", "scan.mode": "full"}).get(SCAN_MODE) == "full"

    def test_a_bad_value_is_reported_under_the_key_used(self) -> None:
        with pytest.raises(InvalidError, match=r"'log\.scan'.*'sideways'"):
            TableOptions({"log.scan": "sideways"}).get(SCAN_MODE)

    def test_get_family_is_keyed_by_member(self) -> None:
        options = TableOptions({"fields.a.stats-mode": "none", "fields.b.c.stats-mode": "FULL", "bucket": "1"})
        assert options.get_family(FIELD_STATS_MODE) == {"a": "none", "b.c": "full"}
        with pytest.raises(TypeError, match="get_family"):
            options.get(FIELD_STATS_MODE)

    def test_is_set(self) -> None:
        assert TableOptions({"bucket": "-1"}).is_set(BUCKET)
        assert TableOptions({"log.scan": "full"}).is_set(SCAN_MODE)
        assert not TableOptions().is_set(BUCKET)

    def test_with_values_sets_and_takes_away_in_a_copy(self) -> None:
        options = TableOptions({"bucket": "4", "bucket-key": "a"})
        assert options.with_values({"bucket": "8", "bucket-key": None}).raw == {"bucket": "8"}
        assert options.raw == {"bucket": "4", "bucket-key": "a"}

    def test_frozen(self) -> None:
        source = {"bucket": "4"}
        options = TableOptions(source)
        source["bucket"] = "5"
        assert options.get(BUCKET) == 4
        with pytest.raises(TypeError):
            options.raw["bucket"] = "5"  # type: ignore[index]
        with pytest.raises(AttributeError):
            options._raw = {}

    def test_equal_options_hash_and_pickle_alike(self) -> None:
        options = TableOptions({"bucket": "4", "bucket-key": "a"})
        same = TableOptions({"bucket-key": "a", "bucket": "4"})
        assert options == same
        assert hash(options) == hash(same)
        assert options != TableOptions({"bucket": "4"})
        assert pickle.loads(pickle.dumps(options)) == options


class TestCheckOptions:
    def test_takes_what_is_declared(self) -> None:
        check_options(
            {
                "bucket": "4",
                "bucket-key": "a",
                "file.format.per.level": "0:avro,5:orc",
                "fields.a.stats-mode": "none",
                "commit.callback.com.x.Call.param": "anything",
                "file-index.bloom-filter.columns": "a",
                "parquet.page.size": "4096",
                "write.compaction-skip": "true",
            }
        )

    def test_takes_every_default(self) -> None:
        check_options({o.name: o.default_text for o in TABLE_OPTIONS if o.default_text is not None and not o.is_family})

    @pytest.mark.parametrize(
        ("key", "suggested"),
        [
            ("buckets", "bucket"),
            ("file.formt", "file.format"),
            ("Target-File-Size", "target-file-size"),
            ("fields.amount.stat-mode", "fields.<column>.stats-mode"),
        ],
    )
    def test_an_unknown_name_suggests_the_nearest(self, key: str, suggested: str) -> None:
        with pytest.raises(InvalidError) as caught:
            check_options({key: "1"})
        assert str(caught.value) == f"unknown table option '{key}'; did you mean '{suggested}'?"

    def test_an_unknown_name_like_no_other_suggests_nothing(self) -> None:
        with pytest.raises(InvalidError, match=r"^unknown table option 'zzqqxx'$"):
            check_options({"zzqqxx": "1"})

    def test_a_connection_option_is_told_apart(self) -> None:
        with pytest.raises(InvalidError, match=r"'s3\.endpoint' belongs to the connection"):
            check_options({"s3.endpoint": "http://localhost"})

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("bucket", "0"),
            ("bucket", "four"),
            ("file.format", "csv"),
            ("data-file.prefix", "../x"),
            ("file.compression.zstd-level", "23"),
            ("target-file-size", "0"),
            ("commit.timeout", "soon"),
            ("fields.a.stats-mode", "some"),
        ],
    )
    def test_a_bad_value_is_refused_by_name(self, key: str, text: str) -> None:
        with pytest.raises(InvalidError, match=rf"option '{key}': expected .* found '{text}'"):
            check_options({key: text})

    @pytest.mark.parametrize(
        ("key", "text", "reason"),
        [
            ("row-tracking.enabled", "true", "only 'false' is accepted"),
            ("fields.a.nested-sequence-field", "b", "it must not be set"),
            ("type", "format-table", "only 'table' is accepted"),
            ("scan.mode", "compacted-full", "only 'default' or 'latest-full' or"),
        ],
    )
    def test_a_value_that_would_change_results_is_refused_by_name(self, key: str, text: str, reason: str) -> None:
        for check in (check_options, check_stored):
            with pytest.raises(InvalidError, match=f"option '{key}' = '{text}'.*{reason}"):
                check({key: text})

    def test_a_refused_option_may_state_its_default(self) -> None:
        check_options({"merge-engine": "Deduplicate", "row-tracking.enabled": "FALSE", "scan.mode": "from-snapshot"})


def test_a_stored_table_may_carry_keys_and_values_of_other_engines() -> None:
    check_stored({"connector": "paimon", "sink.parallelism": "4", "file.format": "csv", "merge-engine": "deduplicate"})


class TestCheckAlter:
    @pytest.mark.parametrize(
        ("key", "old", "new"),
        [
            ("bucket", "4", "8"),
            ("bucket", None, "8"),
            ("bucket", "4", None),
            ("bucket-key", "a", "b"),
            ("primary-key", "a", "a,b"),
            ("partition", None, "a"),
            ("data-file.path-directory", None, "data"),
            ("partition.default-name", None, "none"),
            ("deletion-vectors.enabled", "true", None),
        ],
    )
    def test_a_fixed_option_stays(self, key: str, old: str | None, new: str | None) -> None:
        with pytest.raises(InvalidError, match=f"option '{key}' cannot be changed on a live table"):
            check_alter({} if old is None else {key: old}, {} if new is None else {key: new})

    def test_the_message_shows_both_states(self) -> None:
        with pytest.raises(InvalidError, match=r"it is '-1' by default, '8' was asked for$"):
            check_alter({}, {"bucket": "8"})

    def test_another_spelling_of_the_same_value_is_no_change(self) -> None:
        check_alter({}, {"bucket": "-1"})
        check_alter({"bucket-key": "a,b"}, {"bucket-key": "a, b"})
        check_alter({"merge-engine": "deduplicate"}, {})

    def test_other_options_change_freely(self) -> None:
        check_alter({"file.format": "orc", "bucket": "4"}, {"bucket": "4", "manifest.format": "json"})

    def test_what_changes_is_checked(self) -> None:
        with pytest.raises(InvalidError, match="unknown table option"):
            check_alter({}, {"file.fromat": "orc"})
        with pytest.raises(InvalidError, match="would change results"):
            check_alter({}, {"query-auth.enabled": "true"})

    def test_what_does_not_change_is_not_checked(self) -> None:
        check_alter({"connector": "paimon"}, {"connector": "paimon", "file.format": "orc"})
        check_alter({"connector": "paimon"}, {})

    def test_deletion_vectors_change_where_modifiable(self) -> None:
        with pytest.raises(InvalidError, match=r"'deletion-vectors\.modifiable' = 'true'"):
            check_alter({}, {"deletion-vectors.enabled": "true"})
        check_alter({}, {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"})

    def test_ignoring_deletes_is_never_switched_off(self) -> None:
        with pytest.raises(InvalidError, match="'ignore-delete' cannot be changed"):
            check_alter({"ignore-delete": "true"}, {"ignore-delete": "false"})


def test_connection_options() -> None:
    check_connection({"s3.endpoint": "http://localhost:1", "s3.allow-http": "true"})
    with pytest.raises(
        InvalidError, match=r"unknown connection option 's3\.acces-key'; did you mean 's3\.access-key'\?"
    ):
        check_connection({"s3.acces-key": "x"})
    with pytest.raises(InvalidError, match=r"'s3\.allow-http': expected true or false"):
        check_connection({"s3.allow-http": "maybe"})
