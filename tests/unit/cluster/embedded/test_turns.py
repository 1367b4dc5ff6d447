"""The turns of a single node."""

import asyncio

from lakelet.cluster.embedded.turns import EmbeddedTurns
from lakelet.cluster.turn import BlockingTurns, NotNow, Turn
from tests.unit.moving_clock import MovingClock


def test_work_is_done_once_at_a_time_and_when_it_is_due() -> None:
    async def run() -> None:
        clock = MovingClock()
        turns = EmbeddedTurns(clock)
        turn = await turns.begin("work")
        assert isinstance(turn, Turn)
        assert isinstance(await turns.begin("work"), NotNow)
        other = await turns.begin("other")
        assert isinstance(other, Turn)
        await turns.end(turn, due_in_seconds=120)
        found = await turns.begin("work")
        assert isinstance(found, NotNow)
        assert (found.seconds, found.problem) == (120, None)
        early = await turns.begin("work", when_due=False)
        assert isinstance(early, Turn)
        # What was not done is due as before.
        await turns.end(early)
        clock.move(minutes=2)
        assert isinstance(await turns.begin("work"), Turn)

    asyncio.run(run())


def test_threads_work_in_turns() -> None:
    async def run() -> None:
        turns = EmbeddedTurns(MovingClock())
        blocking = BlockingTurns(turns, asyncio.get_running_loop())
        assert await asyncio.to_thread(blocking.run, "work", lambda: 7) == 7
        assert await asyncio.to_thread(blocking.run, "work", lambda: 8) == 8
        held = await turns.begin("work")
        assert isinstance(held, Turn)
        assert isinstance(await asyncio.to_thread(blocking.run, "work", lambda: 9), NotNow)

    asyncio.run(run())
