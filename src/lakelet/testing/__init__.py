"""Stores that count, fail and crash on purpose, for tests of programs that use Lakelet and of Lakelet itself."""

from lakelet.testing.instrumented_stores import CountingStore, CrashStore, FailingStore, SimulatedCrash, changes

__all__ = ["CountingStore", "CrashStore", "FailingStore", "SimulatedCrash", "changes"]
