"""How much a read takes from Redis at once: it serves nobody else meanwhile."""

from korvet_fast.store.redis.log.reader import MOST_BYTES, MOST_MISSED
from store.redis_log.redis_namespace import LOG, RedisNamespace

LARGE = 500_000  # bytes of a record
ALL = 55 << 20  # bytes that a consumer may ask for


def sent(place: RedisNamespace) -> int:
    """Bytes that the server has sent so far."""
    return int(place.server.info("stats")["total_net_output_bytes"])


async def test_the_first_read_of_a_log_of_large_records_takes_little(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        await scene.fill(LOG, *[1] * 40, size=LARGE)
    async with own_place.scene() as scene:
        scene.store.shared.declare(LOG, own_place.log_format)
        await scene.bounds(LOG)
        before = sent(own_place)
        assert await scene.read_offsets(LOG, 0, ALL)
        assert sent(own_place) - before < MOST_BYTES + 2 * LARGE


async def test_what_is_guessed_from_small_records_counts_for_large_ones_once(own_place: RedisNamespace) -> None:
    async with own_place.scene() as scene:
        await scene.fill(LOG, *[1] * 300)
        await scene.fill(LOG, *[1] * 60, size=LARGE)
    async with own_place.scene() as scene:
        scene.store.shared.declare(LOG, own_place.log_format)
        await scene.bounds(LOG)
        assert await scene.read_offsets(LOG, 300, ALL)
        for _ in range(3):
            assert await scene.read_offsets(LOG, 0, 2000)
            before = sent(own_place)
            assert (await scene.read_offsets(LOG, 300, ALL))[0] == 300
            assert sent(own_place) - before < MOST_MISSED + 2 * LARGE
