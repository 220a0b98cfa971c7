"""Whether bytes of a file are in the page cache, without touching them."""

import ctypes
import mmap
import os

_CACHESTAT = 451  # the system call's number, the same on all machines: cachestat(2), Linux 6.5
_PAGE = mmap.PAGESIZE

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_range = (ctypes.c_uint64 * 2)()  # position, length
_found = (ctypes.c_uint64 * 5)()  # pages cached, and four more counts
_byte = bytearray(1)


def is_cached(fd: int, position: int, length: int) -> bool:
    """Whether all these bytes can be had without waiting. False too where the kernel or file system cannot say."""
    _range[0], _range[1] = position, length
    if _syscall(_CACHESTAT, fd, _range, _found, 0):
        return False
    last = position + length - 1
    if _found[0] < last // _PAGE - position // _PAGE + 1:
        return False
    try:
        # A page still being read ahead counts as cached; what is read in order is complete with its last one.
        return os.preadv(fd, [_byte], last, os.RWF_NOWAIT) == 1
    except OSError:
        return False  # not there yet, or not to be known (EAGAIN, EOPNOTSUPP); a bad disk is met by who reads the bytes
