"""The formats of files outside the lake, and the queries that read them.

DuckDB reads them, in bounded memory. For an existing table, values are read in the types of its columns, never guessed: a
guess would make 123 of the code 00123. For a new table, types are inferred from the whole files.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakelet.errors import InvalidError, NotFoundError
from lakelet.sql.lexer.quotes import listed, literal, quoted

# A progress callback: units done, total units if known, and rows so far.
Tell: TypeAlias = Callable[[float, float | None, int], None]
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
_SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one format, and the options to read them."""

    paths: tuple[str, ...]
    format: str
    delimiter: str | None = None
    header: bool = True
    null: str | None = None
    quote: str = '"'
    escape: str = '"'
    encoding: str = "utf-8"

    @staticmethod
    def of(
        patterns: Sequence[str],
        file_format: str | None,
        *,
        delimiter: str | None = None,
        header: bool = True,
        null: str | None = None,
        quote: str = '"',
        escape: str | None = None,
        encoding: str = "utf-8",
    ) -> Source:
        """The files that match the patterns, in order; NotFoundError where a pattern matches none."""
        for option, sign in (("--quote", quote), ("--escape", escape)):
            if sign is not None and len(sign) != 1:
                raise InvalidError(f"{option} {sign!r}: expected one sign")
        paths: list[str] = []
        for pattern in patterns:
            found = (
                [pattern] if "://" in pattern or os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
            )
            found = [path for path in found if not os.path.isdir(path)]
            if not found:
                raise NotFoundError(f"no file is there for {pattern!r}")
            paths += found
        formats = {file_format or format_of(path) for path in paths}
        if len(formats) > 1:
            raise InvalidError(
                f"the files are of several formats, {' and '.join(sorted(formats))}: import them one by one"
            )
        (chosen,) = formats
        if delimiter is None and all(_stem(path).endswith(".tsv") for path in paths):
            delimiter = "\t"
        return Source(
            tuple(dict.fromkeys(paths)), chosen, delimiter, header, null, quote, escape or quote, encoding.lower()
        )

    def separated_by(self, delimiter: str | None) -> Source:
        """The same files with a delimiter, if none was given."""
        return self if self.delimiter is not None else replace(self, delimiter=delimiter)

    def query(
        self,
        path: str | None = None,
        types: Mapping[str, str] | None = None,
        values: Mapping[str, str] | None = None,
    ) -> str:
        """The query for all rows of one of the files, or of all; `types` are those of its columns, inferred by default, and
        `values` the SQL that converts each."""
        files = listed(self.paths if path is None else [path])
        made = values or {name: quoted(name) for name in types or ()}
        columns = ", ".join(f"{value} AS {quoted(name)}" for name, value in made.items()) if types else "*"
        return f"SELECT {columns} FROM {self._reader(files, types)}"

    @property
    def has_names(self) -> bool:
        """Whether the files name their columns; otherwise columns are matched to the table's by position."""
        return self.header or self.format != "csv"

    def bytes_of(self, path: str) -> int | None:
        """The size of a file, None for a remote one."""
        return None if "://" in path else os.path.getsize(path)

    def row_bytes(self, path: str) -> float | None:
        """The estimated bytes per row, from the first rows; None if unknown."""
        if self.format not in ("csv", "ndjson") or "://" in path or path.endswith(tuple(COMPRESSED)):
            return None
        with open(path, "rb") as file:
            sample = file.read(_SAMPLE_BYTES)
        return len(sample) / max(sample.count(b"\n"), 1)

    def _reader(self, files: str, types: Mapping[str, str] | None) -> str:
        given = "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in (types or {}).items()) + "}"
        match self.format:
            case "parquet":
                return f"read_parquet({files}, union_by_name = true)"
            case "csv":
                parts = [files, f"header = {str(self.header).lower()}"]
                # With given types one file is read at a time; type inference scans all files to their ends.
                parts += [f"types = {given}"] if types else ["union_by_name = true", "sample_size = -1"]
                if types and not self.header:
                    parts.append(f"names = {listed(types)}")
                if self.delimiter is not None:
                    parts.append(f"delim = {literal(self.delimiter)}")
                # An empty text is "", NULL is nothing; where nothing is said to be NULL, "" is as well.
                parts.append(f"allow_quoted_nulls = {str(self.null == '').lower()}")
                parts += [f"quote = {literal(self.quote)}", f"escape = {literal(self.escape)}", "comment = ''"]
                parts.append(f"encoding = {literal(self.encoding)}")
                if self.null is not None:
                    parts.append(f"nullstr = {literal(self.null)}")
                return f"read_csv({', '.join(parts)})"
            case _:
                form = "newline_delimited" if self.format == "ndjson" else "auto"
                parts = [files, f"format = '{form}'"]
                parts += [f"columns = {given}"] if types else ["union_by_name = true", "sample_size = -1"]
                return f"read_json({', '.join(parts)})"


def format_of(path: str) -> str:
    """The format by the file extension; InvalidError names the known ones."""
    ending = os.path.splitext(_stem(path))[1]
    if ending not in _ENDINGS:
        raise InvalidError(
            f"{path!r}: what it holds is not to be seen from its name; say --format, or let it end in {', '.join(_ENDINGS)}"
        )
    return _ENDINGS[ending]


def _stem(path: str) -> str:
    """The name without its compression extension."""
    lowered = path.lower()
    for ending in COMPRESSED:
        lowered = lowered.removesuffix(ending)
    return lowered
