import asyncio

from lakelet.cluster.embedded.leases import EmbeddedLeases, LeaseBook
from tests.unit.moving_clock import MovingClock


def test_one_holder_at_a_time_and_the_later_has_the_higher_token() -> None:
    async def run() -> None:
        clock = MovingClock()
        book = LeaseBook(clock)
        one, other = EmbeddedLeases("one", book), EmbeddedLeases("other", book)
        first = await one.acquire("compact", 10)
        assert first is not None
        assert await other.acquire("compact", 10) is None
        assert await other.acquire("expire", 10) is not None
        assert await one.acquire("compact", 10) == first
        clock.move(minutes=1)
        second = await other.acquire("compact", 10)
        assert second is not None
        assert second.fence > first.fence
        assert not await one.renew(first, 10)
        await one.release(first)
        assert await other.renew(second, 10)
        await other.release(second)
        assert await one.acquire("compact", 10) is not None

    asyncio.run(run())


def test_an_expired_lease_is_not_renewed() -> None:
    async def run() -> None:
        clock = MovingClock()
        leases = EmbeddedLeases("one", LeaseBook(clock))
        lease = await leases.acquire("x", 10)
        assert lease is not None
        clock.move(minutes=1)
        assert not await leases.renew(lease, 10)

    asyncio.run(run())
