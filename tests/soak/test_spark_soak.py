"""Random tables take turns between Spark and local writes, longer than `make test` has time for."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.conftest import java, spark  # noqa: F401 - fixtures
from tests.spark.write.test_write_property import take_turns
from tests.tiers.examples import examples

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`"),
]


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
def test_many_turns(spark: SparkSession, data: st.DataObject) -> None:  # noqa: F811
    take_turns(spark, data, steps=12)
