"""Declarative pipelines: definitions, the graph and its pictures; `lakelet.spark` runs them."""

from lakelet.pipeline.definition import Pipeline
from lakelet.pipeline.graph import Graph
from lakelet.pipeline.yaml_file import load_yaml, parse_pipeline

__all__ = ["Graph", "Pipeline", "load_yaml", "parse_pipeline"]
