"""Instructions instead of time: what every native call and every request takes, counted by callgrind.

The same on a busy machine as on an idle one, so that two states of the project can be compared and a few percent seen.
"""

from typing import Final

NOTHING: Final = "nothing"  # what the counting itself takes, subtracted from the others
REPEATS: Final = {1: 50, 100: 20, 10_000: 2}  # how often a native call on so many records is counted
REQUESTS: Final = 20  # how often a request is
