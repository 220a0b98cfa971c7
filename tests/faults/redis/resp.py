"""Where the commands and replies of a RESP stream begin and end."""


class Splitter:
    """Bytes in, whole frames out; keeps the rest."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> list[bytes]:
        data = self._kept + data
        start = 0
        frames = []
        while (end := find_end(data, start)) is not None:
            frames.append(data[start:end])
            start = end
        self._kept = data[start:]
        return frames


def find_end(data: bytes, start: int) -> int | None:
    """Where the frame that begins at `start` ends; None when it is not all there."""
    left = 1
    while left:
        line = data.find(b"\r\n", start)
        if line < 0:
            return None
        kind, count = data[start : start + 1], data[start + 1 : line]
        start = line + 2
        left -= 1
        if kind in b"*~>":
            left += max(int(count), 0)
        elif kind == b"%":
            left += 2 * int(count)
        elif kind in b"$=!" and int(count) >= 0:
            start += int(count) + 2
            if start > len(data):
                return None
    return start


def command_name(frame: bytes) -> bytes:
    """A command's name in upper case."""
    return frame.split(b"\r\n", 3)[2].upper() if frame.startswith(b"*") else frame.split()[0].upper()
