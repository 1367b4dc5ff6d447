"""Random tables with a folding merge engine, and random rows for them, from a seed.

`EngineTable` has the columns and options of a table and the rules that the model folds by. `Versions` is the model of a table: of
every key the rows that are not merged yet, as files hold them.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pyroaring import BitMap

from tests.unit.lsm.engine.row_model import RETRACTS, Row, Rules, order

ADDITIVE = ("sum", "product", "last_value", "last_non_null_value", "collect", "merge_map", "nested_update")
"""The functions that take values back."""
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
ROWS = "ARRAY<ROW<k INT, v STRING>>"
TIMES = "MAP<STRING, ROW<v INT, ts STRING>>"
SPECIAL = {
    "STRING": ["listagg", "listagg"],
    "ARRAY<INT>": ["collect"],
    "ARRAY<ARRAY<STRING>>": ["collect"],
    "MAP<STRING, INT>": ["merge_map"],
    TIMES: ["merge_map_with_keytime"],
    ROWS: ["nested_update", "nested_update", "nested_partial_update", "collect"],
    "BYTES": ["rbm32"],
}
"""The functions that assemble values, by the types of their columns."""
TYPES = (*NUMBERS, "DECIMAL(12, 2)", "DECIMAL(38, 3)", "STRING", "BOOLEAN", "DATE", *SPECIAL)
KEY = "id"


class EngineTable:
    """A table of the engine `aggregation` or `partial-update`; its key is `id`."""

    def __init__(self, seed: int, engine: str) -> None:
        self.random = source = random.Random(f"{engine} {seed}")
        self.engine = engine
        self.options = {"merge-engine": engine}
        self.retracts = source.random() < 0.6
        self.types: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.settings: dict[str, dict[str, str]] = {}
        self.sequence: str | None = None
        groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        removing: list[str] = []
        partial = engine == "partial-update"
        if not partial or source.random() < 0.3:
            self._columns("c", source.randint(1, 5), aggregated=not partial)
        else:
            for number in range(source.randint(0, 3)):
                groups.append(self._group(number))
            self._columns("c", source.randint(1, 2), aggregated=False)
        if groups and self.retracts and source.random() < 0.5:
            removing = [source.choice(source.choice(groups)[0])]
            self.options["partial-update.remove-record-on-sequence-group"] = removing[0]
        ignores: set[str] = set()
        removes = self.retracts and (source.random() < 0.4 if not partial else not groups)
        if removes:
            self.options[f"{engine}.remove-record-on-delete"] = "true"
        elif self.retracts:
            ignores = {
                name
                for name, function in self.functions.items()
                if self._keeps(name, function) or source.random() < 0.3
            }
            self.options |= {f"fields.{name}.ignore-retract": "true" for name in ignores}
        if source.random() < 0.3:
            self.sequence = "version"
            self.types["version"] = "INT"
            self.options["sequence.field"] = "version"
            if not partial:
                self.functions["version"] = "last_value"
        self.only_deletes = removes
        self.rules = Rules(
            key=(KEY,),
            types=dict(self.types),
            functions=self.functions,
            ignores=frozenset(ignores),
            removes=removes,
            groups=tuple(groups),
            removing=frozenset(removing),
            partial=partial,
            settings=self.settings,
        )

    def _keeps(self, name: str, function: str) -> bool:
        """Whether a function cannot take values back."""
        if function == "collect" and self.types[name] != "ARRAY<INT>" and "distinct" not in self.settings[name]:
            return True
        return function not in ADDITIVE or function == "product"

    @property
    def unordered(self) -> list[str]:
        """The columns with arrays whose elements Java gives in the order of a hash table."""
        return [
            name
            for name, function in self.functions.items()
            if function in ("collect", "nested_update", "nested_partial_update")
        ]

    def _set(self, name: str, function: str) -> None:
        """Choose the options of a column's function."""
        chosen: dict[str, str] = {}
        compared = self.types[name] != "ARRAY<ARRAY<STRING>>"
        if function in ("listagg", "collect") and compared and self.random.random() < 0.5:
            chosen["distinct"] = "true"
        if function == "listagg" and self.random.random() < 0.5:
            chosen["list-agg-delimiter"] = "; "
        if function == "merge_map_with_keytime" and self.random.random() < 0.5:
            chosen["ts-field"] = "ts"
        if function == "nested_partial_update" or (function == "nested_update" and self.random.random() < 0.5):
            chosen["nested-key"] = self.random.choice(["k", "k", "k,v"])
        elif function == "nested_update" and self.random.random() < 0.5:
            # With a key the rows that are left depend on the order of a hash table.
            chosen["count-limit"] = "4"
        self.settings[name] = chosen
        self.options |= {f"fields.{name}.{option}": text for option, text in chosen.items()}

    def _columns(self, prefix: str, count: int, *, aggregated: bool) -> list[str]:
        names = []
        for number in range(count):
            name = f"{prefix}{number}"
            self.types[name] = self.random.choice(TYPES)
            if aggregated and self.random.random() < 0.85:
                self.functions[name] = self.random.choice(functions_of(self.types[name]))
                self.options[f"fields.{name}.aggregate-function"] = self.functions[name]
                self._set(name, self.functions[name])
            names.append(name)
        return names

    def _group(self, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        sequence = [f"g{number}{letter}" for letter in "ab"[: self.random.randint(1, 2)]]
        members = self._columns(f"m{number}", self.random.randint(1, 3), aggregated=self.random.random() < 0.6)
        for name in sequence:
            self.types[name] = self.random.choice(["INT", "BIGINT", "STRING"])
        self.options[f"fields.{','.join(sequence)}.sequence-group"] = ",".join(members)
        return tuple(sequence), tuple(members)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """All columns, in an order that is the same in every process."""
        names = list(self.types)
        random.Random(len(names)).shuffle(names)
        return [(KEY, "INT NOT NULL"), *((name, self.types[name]) for name in names)]

    def rows(self) -> list[Row]:
        """A batch, kinds under `_kind`."""
        count = self.random.choice([1, 3, 8, 20])
        return [self._row() for _ in range(count)]

    def _row(self) -> Row:
        kinds = ["+I", "+I", "+I", "+U"]
        if self.retracts:
            kinds += ["-D", "-D"]
            # What a -U takes back is not defined for every function.
            kinds += [] if self.only_deletes and self.engine == "aggregation" else ["-U"]
        row = {KEY: self.random.randrange(6), "_kind": self.random.choice(kinds)}
        return row | {name: self._value(type_, name) for name, type_ in self.types.items()}

    def _value(self, type_: str, name: str) -> Any:
        if self.random.random() < 0.25:
            return None
        source = self.random
        if type_ in SPECIAL:
            return self._nested(type_, name)
        match type_.partition("(")[0]:
            case "FLOAT":
                return source.choice([float("nan"), 0.5, -3.25, 16777216.0, 1.0, source.randrange(9) / 8])
            case "DOUBLE":
                return source.choice([float("inf"), 0.1, 0.2, -1e16, 3.0, source.random()])
            case "DECIMAL":
                if type_.startswith("DECIMAL(38"):
                    return Decimal(
                        source.choice(["9" * 35 + ".999", "-" + "9" * 35 + ".500", f"{source.randrange(99)}.125"])
                    )
                return Decimal(source.choice(["99999.25", "-3.75", f"{source.randrange(99)}.50"]))
            case "BOOLEAN":
                return source.random() < 0.5
            case "DATE":
                return datetime.date(2024, 1, source.randrange(1, 29))
        if name.startswith("g") or name == "version":
            return source.randrange(4)
        bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[type_]
        return source.choice([2**bits - 1, -(2**bits), source.randrange(1, 5), -3])

    def _nested(self, type_: str, name: str) -> Any:
        """A value of the types whose functions assemble values."""
        source = self.random
        some = range(source.randrange(4))
        text = source.choice(["", "a", "b", "zz", "ünï", "\U0001f600", "\uff5e"])
        match type_:
            case "STRING":
                return source.choice([text, "a,b", "b,,a,", "a; b", "longer than the others"])
            case "ARRAY<INT>":
                return [source.choice([None, 1, 2, 3]) for _ in some]
            case "ARRAY<ARRAY<STRING>>":
                return [source.choice([None, [], ["a"], ["a", None], ["b"]]) for _ in some]
            case "MAP<STRING, INT>":
                return [(key, source.choice([None, 1, 2])) for key in sorted(source.sample("abc", len(some)))]
            case "BYTES":
                return BitMap([source.choice([1, 5, 70000, 2**31 + 9]) for _ in some]).serialize()
        if type_ == TIMES:
            given = {"v": source.randrange(99), "ts": source.choice([None, text])}
            return [(key, source.choice([given, given, None])) for key in sorted(source.sample("abc", len(some)))]
        assert type_ == ROWS, name
        rows = [{"k": source.choice([None, 1, 2]), "v": source.choice([None, "x", "y"])} for _ in some]
        return [source.choice([row, row, row, None]) for row in rows]


def functions_of(type_: str) -> list[str]:
    """The functions that a column of a type may have."""
    found = ["last_value", "last_non_null_value", "first_value", "first_non_null_value"]
    if type_ == "BOOLEAN":
        return [*found, "bool_and", "bool_or"]
    found += SPECIAL.get(type_, []) * 3
    if type_ in SPECIAL and type_ != "STRING":
        return found
    found += ["max", "min"]
    if type_ in NUMBERS:
        return [*found, "sum", "sum", "product"]
    return [*found, "sum", "sum", "product"] if type_.startswith("DECIMAL") else found


class Versions:
    """The rows of a table as they lie in its files, by key."""

    def __init__(self, table: EngineTable) -> None:
        self._rules, self._sequence = table.rules, table.sequence
        self._held: dict[int, list[Row]] = {}

    def write(self, rows: Sequence[Row]) -> None:
        """A batch: the rows of each key are folded before they are written."""
        for key in {row[KEY] for row in rows}:
            own = self._in_order([row for row in rows if row[KEY] == key])
            self._held.setdefault(key, []).append(self._rules.fold(own))

    def compact(self) -> None:
        """A full compaction leaves one row of each key, none where that is a retract."""
        self._held = {row[KEY]: [row] for row in self._folded()}

    def rows(self) -> list[Row]:
        """The visible rows, by key, without kinds."""
        return [{name: value for name, value in row.items() if name != "_kind"} for row in self._folded()]

    def _folded(self) -> list[Row]:
        folded = [self._rules.fold(self._in_order(rows)) for _, rows in sorted(self._held.items())]
        return [row for row in folded if row["_kind"] not in RETRACTS]

    def _in_order(self, rows: list[Row]) -> list[Row]:
        """Oldest first: by `sequence.field`, NULL least, then by arrival."""
        if self._sequence is None:
            return rows
        name = self._sequence
        return sorted(rows, key=lambda row: (row[name] is not None, order(row[name]) if row[name] is not None else 0))
