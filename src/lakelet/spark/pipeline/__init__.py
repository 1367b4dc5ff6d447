"""The runner of declarative pipelines: definitions of `lakelet.pipeline` on DataFrames and structured streaming."""
