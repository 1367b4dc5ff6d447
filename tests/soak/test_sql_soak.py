"""More random queries, conditions and statements than `make test` has time for."""

import os

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.sql.test_sql_changes_oracle import judge_changes
from tests.property.sql.test_sql_oracle import LAYOUTS, conditioned, judge_conditions, judge_queries
from tests.unit.sql.test_fuzz import stir

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]


@settings(max_examples=300)
@given(seed=st.integers(0, 2**40))
def test_many_queries_give_the_rows_of_plain_tables(seed: int) -> None:
    judge_queries(seed)


@settings(max_examples=500)
@given(case=conditioned(), layout=st.sampled_from(LAYOUTS))
def test_many_conditions_prune_no_row_that_they_keep(case: tuple[pa.Table, list[str]], layout: str) -> None:
    judge_conditions(case, layout)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**40))
def test_many_statements_end_in_no_error_of_another_kind(seed: int) -> None:
    stir(seed)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**40))
def test_many_changes_give_the_rows_of_plain_tables(seed: int) -> None:
    judge_changes(seed)
