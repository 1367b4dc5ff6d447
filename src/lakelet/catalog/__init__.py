"""The catalog: databases and tables of one warehouse."""

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake

__all__ = ["Lake", "connect"]
