"""Declarative pipelines: definitions, the graph and its pictures; `lakelet.spark` runs them.

import lakelet.pipeline as lp
shop = lp.load("shop.yaml", {"day": "2026-01-01"})
"""

from lakelet.pipeline.definition import Pipeline
from lakelet.pipeline.graph import Graph
from lakelet.pipeline.load import load
from lakelet.pipeline.registry import (
    append_flow,
    auto_cdc,
    create_sink,
    create_streaming_table,
    defined,
    materialized_view,
    parameter,
    pipeline,
    source,
    table,
    temporary_view,
)
from lakelet.pipeline.yaml_file import load_yaml, parse_pipeline

__all__ = [
    "Graph",
    "Pipeline",
    "append_flow",
    "auto_cdc",
    "create_sink",
    "create_streaming_table",
    "defined",
    "load",
    "load_yaml",
    "materialized_view",
    "parameter",
    "parse_pipeline",
    "pipeline",
    "source",
    "table",
    "temporary_view",
]
