"""pypaimon and its native library, in an environment of their own because of the old Arrow they need."""
