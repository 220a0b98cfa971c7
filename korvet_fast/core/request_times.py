"""How many requests of each kind were answered, and how long that took: the dialects count, `/metrics` reads."""


class RequestTimes:
    """Requests of one kind. `seconds`: from when a request is cut from the connection to its answer, waits included."""

    __slots__ = ("count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
