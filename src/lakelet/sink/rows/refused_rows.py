"""Errors about refused rows, with their number and some examples, so that those of parallel tasks can be merged."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.errors import InvalidError

SHOWN = 5


class RefusedRowsError(InvalidError):
    """Counts refused rows and shows some of them. Those of several tasks can be merged."""

    def __init__(self, what: str, count: int, examples: Sequence[str], advice: str = "") -> None:
        self.what = what
        self.count = count
        self.examples = tuple(examples[:SHOWN])
        self.advice = advice
        rows = "1 row" if count == 1 else f"{count:,} rows"
        shown = f", for example {'; '.join(self.examples)}" if self.examples else ""
        super().__init__(f"{rows} {what}{shown}" + (f": {advice}" if advice else ""))

    def __reduce__(self) -> tuple[type[RefusedRowsError], tuple[str, int, tuple[str, ...], str]]:
        return type(self), (self.what, self.count, self.examples, self.advice)


def merged_errors(errors: Sequence[RefusedRowsError]) -> RefusedRowsError:
    """Merge the errors that have the same reason as the first into one."""
    first = errors[0]
    same = [error for error in errors if error.what == first.what]
    examples = [example for error in same for example in error.examples]
    return RefusedRowsError(first.what, sum(error.count for error in same), examples, first.advice)


def repeated_keys(count: int, examples: Sequence[str]) -> RefusedRowsError:
    """Several rows of one key, none of which is the last."""
    return RefusedRowsError(
        "with the primary key of another row of the same write",
        count,
        examples,
        "rows spread over tasks have no order that would say which one counts; keep one row per key, give the table a "
        "'sequence.field', or take any of them with on_duplicate=\"any\"",
    )


def keys_of_unlike_rows(count: int, examples: Sequence[str]) -> RefusedRowsError:
    """Several rows of one key of which one keeps stored values that another one of them changes."""
    return RefusedRowsError(
        "with the primary key of another row of the same write, which keeps stored values of other columns or deletes the key",
        count,
        examples,
        "with missing='keep' rows that lack different columns, and deletes beside them, need keys of their own; use one write "
        "after the other",
    )


def null_keys(columns: Sequence[str], count: int, examples: Sequence[str]) -> RefusedRowsError:
    """NULL in one of the columns in which the table allows none."""
    return RefusedRowsError(f"with NULL in a column that is NOT NULL ({', '.join(columns)})", count, examples)
