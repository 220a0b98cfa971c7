"""How many copies a directory of files keeps: one."""


def find_missing_copies(copies: int) -> str:
    """A warning that acks=all cannot be kept with `min.insync.replicas` as `copies`, and the remedy; "" if it can."""
    if copies <= 1:
        return ""
    return (
        f"acks=all cannot be kept (NOT_ENOUGH_REPLICAS): min.insync.replicas={copies}, and files of our own are one "
        "copy. Set it to 1, or keep the records in a Redis with replicas"
    )
