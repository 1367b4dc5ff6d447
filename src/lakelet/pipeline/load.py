"""Load a pipeline from a file in YAML or Python, by how its name ends."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lakelet.errors import InvalidError
from lakelet.pipeline.definition import Pipeline
from lakelet.pipeline.python_file import load_python
from lakelet.pipeline.yaml_file import load_yaml


def load(
    path: str | os.PathLike[str], parameters: Mapping[str, str] | None = None, environment: str | None = None
) -> Pipeline:
    """The pipeline of a file. A Python file is code, and runs; a YAML file runs nothing."""
    name = os.fspath(path).lower()
    if name.endswith(".py"):
        if environment is not None:
            raise InvalidError(f"{path}: environments are for YAML; a Python file asks for parameters")
        return load_python(path, parameters)
    if not name.endswith((".yaml", ".yml")):
        raise InvalidError(f"{path}: expected a file whose name ends in .yaml, .yml or .py")
    return load_yaml(path, parameters, environment)
