"""Numbers of a partition that nobody uses, made anew while memory is quiet (`idle.py` says why)."""


def renew(number: int, *others: int) -> int:
    """The same number: the first of the `others` that is equal, or else another object."""
    return next((other for other in others if other == number), number + 0)
