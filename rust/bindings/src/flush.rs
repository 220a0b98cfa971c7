//! Flushes under way, seen from Python.

use std::os::fd::AsRawFd;
use std::path::PathBuf;

use korvet_flush::{Done, Flusher as Threads, Job};
use pyo3::prelude::*;

/// Flushes files to the disk on threads of its own, which never take the interpreter's lock.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Flusher(Threads);

#[pymethods]
impl Flusher {
    /// At most `threads` logs are flushed side by side. The first thread begins at once. Raises `OSError` if it cannot.
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        Ok(Self(Threads::new(threads)?))
    }

    /// A file descriptor that is readable when `take` has something to give; it stays this object's.
    fn fileno(&self) -> i32 {
        self.0.signal().as_raw_fd()
    }

    /// Make durable: the data of files, in order, and then the entries of directories.
    ///
    /// Jobs of one `log`, a number of the caller's, are done in the order given; what has gathered while one is under way
    /// is one flush. `ticket` comes back with the result.
    fn flush(&mut self, log: u64, ticket: u64, files: Vec<PathBuf>, directories: Vec<PathBuf>) {
        self.0.flush(log, Job { ticket, files, directories });
    }

    /// (ticket, None or why it failed) of what was done since this was last asked.
    fn take(&self) -> Vec<(u64, Option<String>)> {
        let tell = |done: Done| {
            (done.ticket, done.failure.map(|(path, error)| format!("{}: {error}", path.display())))
        };
        self.0.take().into_iter().map(tell).collect()
    }

    /// (how many flushes ended so far, the seconds that the disk took for them); jobs done together are one flush.
    fn spent(&self) -> (u64, f64) {
        let spent = self.0.spent();
        (spent.flushes, spent.time.as_secs_f64())
    }

    /// Wait until everything given is done, and end the threads; `take` gives the last results.
    fn close(&mut self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
