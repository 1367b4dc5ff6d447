"""Test tiers: what each test costs, and which tests a run takes (docs/testing.md)."""
