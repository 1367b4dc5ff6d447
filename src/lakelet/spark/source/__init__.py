"""The data source "lakelet" of Spark's own API."""
