"""How hard hypothesis tries: the same few examples, or new ones, and many, with KORVET_TEST_HYPOTHESIS=thorough."""

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("KORVET_TEST_HYPOTHESIS") == "thorough"


def examples(fast: int) -> settings:
    """Settings for a test: `fast` examples, or twenty times as many when thorough."""
    return settings(
        max_examples=20 * fast if THOROUGH else fast,
        derandomize=not THOROUGH,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        database=None,
    )
