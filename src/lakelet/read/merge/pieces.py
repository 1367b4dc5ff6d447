"""Cut the sources of a bucket into pieces for the merge: whole sections, small ones together, large ones raw.

    raw        a large section of one run of files without retracts: nothing to merge, `SplitReader` reads it
    merged     sections of any kind, as many as a budget of memory takes; one that is larger is a piece of its own

Nothing is read here but a few rows of the largest file, once, to learn how large rows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.lsm.sections import Section, may_hold_retracts, needs_merge, sections
from lakelet.lsm.source.row_source import RowSource, SourceStats
from lakelet.lsm.spilled_runs import MOST_RUNS
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.model.types import Field
from lakelet.options import ROWKIND_FIELD, TableOptions
from lakelet.read.merge.file_run import FileRun
from lakelet.read.merge.key_value_files import KeyValueFiles
from lakelet.read.merge.overlaid_split import AnySplit, OverlaidSplit
from lakelet.read.split_files import files_of

_RAW_ROWS = 131_072
# Estimates for the size of text: few columns are longer than this on average, and compression gains about this factor.
_VARIABLE_BYTES = 64
_DECODED_PER_STORED = 4
_SAMPLED_FROM_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole sections to read together. `split` is set where they are raw; otherwise `runs` are the sources of each run.

    `sequences` and `kinds` tell whether these columns are needed: not where every run is newer than the one before it, and not
    where no source has retracts.
    """

    runs: tuple[tuple[RowSource, ...], ...]
    decoded_bytes: int
    sequences: bool
    kinds: bool
    split: Split | None = None

    @property
    def sources(self) -> list[RowSource]:
        """All sources, run by run."""
        return [source for run in self.runs for source in run]

    @property
    def row_count(self) -> int:
        """The rows of all sources, before any filter."""
        return sum(source.data.row_count for source in self.sources)


class PieceCutter:
    """Cuts the sources of splits into pieces. With `versions` the reader gives out sequence numbers and kinds, and nothing is
    raw."""

    def __init__(self, schema: TableSchema, spec: MergeSpec, files: KeyValueFiles, *, versions: bool) -> None:
        self._files = files
        self._versions = versions
        self._folds = not isinstance(spec.engine, SelectEngine)
        self._key_types = [data_type for _, data_type in spec.key]
        self._counts_deletes = TableOptions(schema.options).get(ROWKIND_FIELD) is None
        self._row_bytes = sum(_value_bytes(field) for field in files.fields)
        self._has_texts = any(_is_variable(field) for field in files.fields)
        self._sampled_bytes = 0
        # How much of a file belongs to the columns that are read.
        self._stored_share = self._row_bytes / sum(_value_bytes(field) for field in schema.fields)

    def pieces(self, split: AnySplit, budget: int) -> Iterator[Piece]:
        """The sections of a split in key order, small ones together."""
        files, beside = (split.split, split.runs) if isinstance(split, OverlaidSplit) else (split, ())
        sources: list[RowSource] = [] if files is None else [FileRun(file, self._files) for file in files_of([files])]
        sources += beside
        self._sample(sources)
        packed: list[Section] = []
        packed_bytes = 0
        stats = [source.data for source in sources]
        for section in sections(stats, self._key_types):
            members = [sources[place] for place in section.places]
            is_raw = self._is_raw(stats, section, members)
            size = sum(self.decoded_bytes(member) for member in members)
            if size > budget and not is_raw:
                size = sum(self._narrowed_bytes(member) for member in members)
            if packed and (is_raw or packed_bytes + size > budget):
                yield self._piece(sources, packed, packed_bytes)
                packed, packed_bytes = [], 0
            if is_raw:
                assert files is not None
                yield Piece((), 0, False, False, _part(files, section.places))
            else:
                packed.append(section)
                packed_bytes += size
        if packed:
            yield self._piece(sources, packed, packed_bytes)

    def decoded_bytes(self, source: RowSource) -> int:
        """About how much memory the columns that are read take."""
        data = source.data
        stored = int(data.size * self._stored_share)
        return max(data.row_count * max(self._row_bytes, self._sampled_bytes), _DECODED_PER_STORED * stored, 1)

    def _is_raw(self, stats: Sequence[SourceStats], section: Section, members: Sequence[RowSource]) -> bool:
        return (
            not self._versions
            and sum(member.data.row_count for member in members) >= _RAW_ROWS
            and all(isinstance(member, FileRun) for member in members)
            and not needs_merge(stats, section, counts_deletes=self._counts_deletes)
        )

    def _piece(self, sources: Sequence[RowSource], packed: Sequence[Section], decoded_bytes: int) -> Piece:
        # Sections come in key order, so a run of one goes on with a run of the next.
        width = max(len(section.runs) for section in packed)
        runs = tuple(
            tuple(sources[place] for section in packed if len(section.runs) > run for place in section.runs[run])
            for run in range(width)
        )
        stats = [source.data for source in sources]
        # Runs that are merged in several rounds hand the kinds of folded rows on to the next.
        hands_on = self._folds and width > MOST_RUNS
        # A file holds a key once, a run in memory may hold several rows of it.
        repeats = any(not isinstance(source, FileRun) for run in runs for source in run)
        return Piece(
            runs,
            decoded_bytes,
            sequences=self._versions or repeats or not all(_newer_and_newer(stats, section) for section in packed),
            kinds=self._versions
            or hands_on
            or any(may_hold_retracts(one.data, counts_deletes=self._counts_deletes) for run in runs for one in run),
        )

    def _sample(self, sources: Sequence[RowSource]) -> None:
        """Sample a few rows of the largest file, once per reader: the metadata does not give the length of text."""
        files = [source for source in sources if isinstance(source, FileRun)]
        if not self._has_texts or self._sampled_bytes or not files:
            return
        largest = max(files, key=lambda file: file.data.row_count)
        if largest.data.row_count >= _SAMPLED_FROM_ROWS:
            self._sampled_bytes = self._files.sampled_row_bytes(largest.file)

    def _narrowed_bytes(self, source: RowSource) -> int:
        """The same, of the row groups only that may hold keys that match."""
        size = self.decoded_bytes(source)
        if not isinstance(source, FileRun):
            return size
        return size * self._files.matching_rows(source.file) // max(1, source.data.row_count)


def _newer_and_newer(stats: Sequence[SourceStats], section: Section) -> bool:
    """Whether every row of a run is newer than all rows of the runs before it, by the sequence numbers of the sources."""
    ranges = [
        (min(stats[place].min_sequence for place in run), max(stats[place].max_sequence for place in run))
        for run in section.runs
    ]
    # The later files of a large write have the last number of it as their least in pypaimon, whatever they hold.
    is_sound = all(
        0 < one.max_sequence - one.min_sequence >= one.row_count - 1
        for one in (stats[place] for place in section.places)
    )
    return is_sound and all(older[1] < newer[0] for older, newer in pairwise(ranges))


def _part(split: Split, places: Sequence[int]) -> Split:
    """Some files of a split, read as they are."""
    return replace(
        split,
        files=tuple(split.files[place] for place in places),
        paths=tuple(split.paths[place] for place in places),
        deletion_vectors=tuple(split.deletion_vectors[place] for place in places),
        needs_merge=False,
    )


def _value_bytes(field: Field) -> int:
    """About how much memory a value takes."""
    return _VARIABLE_BYTES if _is_variable(field) else max(1, int(to_arrow(field.type).bit_width) // 8)


def _is_variable(field: Field) -> bool:
    try:
        return int(to_arrow(field.type).bit_width) < 0
    except ValueError:
        return True
