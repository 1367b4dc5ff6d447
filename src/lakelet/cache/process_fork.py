"""Caches in forked processes start empty: changes that the parent makes are not published to a child, and a lock may have been
held at the fork by a thread that the child does not have."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class _Resettable(Protocol):
    def reset(self) -> None: ...


_members: weakref.WeakSet[_Resettable] = weakref.WeakSet()


def reset_in_children(member: _Resettable) -> None:
    """Call `reset` of this object in every process that is forked from this one while it lives."""
    _members.add(member)


def _reset() -> None:
    for member in tuple(_members):
        member.reset()


os.register_at_fork(after_in_child=_reset)
