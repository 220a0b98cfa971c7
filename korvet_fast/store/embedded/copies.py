"""How many copies a directory of files keeps: one."""


def find_missing_copies(copies: int) -> str:
    """What becomes of acks=all where `min.insync.replicas` is `copies`, and what to do; "" if it can be kept."""
    if copies <= 1:
        return ""
    return (
        f"acks=all cannot be kept (NOT_ENOUGH_REPLICAS): min.insync.replicas={copies}, and files of our own are one "
        "copy. Set it to 1, or keep the records in a Redis with replicas"
    )
