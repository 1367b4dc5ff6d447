"""The contenders beside Lakelet."""
