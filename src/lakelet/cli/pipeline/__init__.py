"""`lakelet pipeline`: run, check, draw and start pipelines."""
