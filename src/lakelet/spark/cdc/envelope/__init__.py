"""The envelopes of change events: each brought into the same columns."""
