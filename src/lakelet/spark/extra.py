"""Check that PySpark is installed, and raise an error that says how to install it."""

try:
    import pyspark as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lakelet.spark needs PySpark, which is not installed: pip install 'lakelet[spark]'", name=error.name
    ) from error
