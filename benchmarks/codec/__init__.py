"""The codec's contract, call by call: plain Python, the same source compiled by Cython, and Rust."""

IMPLEMENTATIONS = ("python", "cython", "rust")
