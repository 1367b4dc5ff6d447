"""Whatever is written as a statement either runs or is refused by an error of Lakelet's own."""

import random
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakelet
from lakelet import Lake
from tests.tiers.examples import examples
from tests.unit.sql.sql_soup import STATEMENTS, Soup, is_refusal

STATEMENTS_EACH = 60


def filled(folder: str | Path) -> Lake:
    lake = lakelet.connect(folder)
    lake.sql("CREATE TABLE t (id INT NOT NULL, v STRING, n DECIMAL(10, 2), day DATE)")
    lake.sql(
        "CREATE TABLE u (id INT NOT NULL, v STRING NOT NULL, n BIGINT, PRIMARY KEY (id, v) NOT ENFORCED) "
        "PARTITIONED BY (v) WITH ('bucket' = '1')"
    )
    lake.sql("INSERT INTO t VALUES (1, 'a', 1, DATE '2026-01-01'), (2, 'b', NULL, NULL)")
    lake.sql("INSERT INTO u VALUES (1, 'a', 1), (2, 'b', NULL)")
    lake.sql("CREATE TEMP TABLE tt (id INT PRIMARY KEY, v STRING, n INT)")
    lake.sql("INSERT INTO tt VALUES (1, 'a', 1)")
    lake.sql("CREATE TEMP VIEW tv (a, b) AS SELECT id, v FROM t")
    return lake


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 2**40))
def test_no_statement_ends_in_an_error_of_another_kind(seed: int) -> None:
    stir(seed)


def stir(seed: int) -> None:
    """Many statements on one lake, decided by a number."""
    soup = Soup(random.Random(seed))
    with TemporaryDirectory() as folder:
        lake = filled(folder)
        for _ in range(STATEMENTS_EACH):
            text = soup.statement()
            try:
                lake.sql(text).rows()
            except Exception as error:
                if not is_refusal(error):
                    pytest.fail(f"{type(error).__name__}: {error}\n{text!r}")


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_statements_themselves_are_sound(text: str, tmp_path: Path) -> None:
    # Otherwise the soup would be made of nothing but errors.
    refused = ("SHOW PARTITIONS t", "INSERT OVERWRITE u PARTITION", "ALTER TABLE u DROP COLUMN v")
    lake = filled(tmp_path)
    with pytest.raises(lakelet.LakeletError) if text.startswith(refused) else nullcontext():
        lake.sql(text).rows()
