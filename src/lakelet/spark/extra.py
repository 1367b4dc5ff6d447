"""What has to be installed for this package, said where it is missing."""

try:
    import pyspark as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lakelet.spark needs PySpark, which is not installed: pip install 'lakelet[spark]'", name=error.name
    ) from error
