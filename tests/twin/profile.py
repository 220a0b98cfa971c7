"""How hard hypothesis tries: the same few examples; new ones with each seed; or new ones and many.

KORVET_TEST_HYPOTHESIS_SEED: the number that the examples follow from, and the store over which a foreign client plays a
scenario (`tests/compat/test_matrix.py`); `.ci/run` takes another one each time, and prints it.
KORVET_TEST_HYPOTHESIS=thorough: many, of no seed.
"""

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("KORVET_TEST_HYPOTHESIS") == "thorough"
SEED = os.environ.get("KORVET_TEST_HYPOTHESIS_SEED")


def examples(fast: int, thorough: int | None = None) -> settings:
    """Settings for a test: `fast` examples, or `thorough` ones (twenty times as many) when thorough."""
    return settings(
        max_examples=(thorough or 20 * fast) if THOROUGH else fast,
        derandomize=not THOROUGH and SEED is None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        database=None,
    )
