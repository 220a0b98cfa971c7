//! Group commit's slow half: flushing files to the disk, on threads that need nothing of the caller's.
//!
//! A Python thread that flushes takes the interpreter's lock twice for each flush, and the loop that holds it pays for
//! every hand-over. These threads never touch it: jobs go in through a queue, results come out of another, and a
//! socket becomes readable when there are some.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A flush to be done: of the data of files, and then of the entries of directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Given back with the result.
    pub ticket: u64,
    /// Files, flushed with fdatasync, in this order.
    pub files: Vec<PathBuf>,
    /// Directories in which files were made, flushed after them.
    pub directories: Vec<PathBuf>,
}

/// A job that was done, or why not.
#[derive(Debug)]
pub struct Done {
    /// The ticket of the job.
    pub ticket: u64,
    /// The failure and its place.
    pub failure: Option<(PathBuf, io::Error)>,
}

/// Threads that flush. Jobs of one log are done one after the other; what has gathered meanwhile is one flush.
#[derive(Debug)]
pub struct Flusher {
    shared: Arc<Shared>,
    readable: UnixStream,
    most: usize,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    tell: UnixStream,
}

#[derive(Debug, Default)]
struct State {
    logs: VecDeque<u64>,          // with jobs that wait, and nobody at work on them
    jobs: HashMap<u64, Vec<Job>>, // by log, those in the queue or at work; no entry: at rest
    idle: usize,                  // threads that wait for work
    done: Vec<Done>,
    spent: Spent,
    closed: bool,
}

/// The flushes that ended so far, those that failed too, and how long the disk took for all of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Jobs that were done together are one flush.
    pub flushes: u64,
    /// Waits for a thread do not count.
    pub time: Duration,
}

impl Flusher {
    /// At most `threads` logs are flushed side by side. The first thread begins at once: with that one every job is done,
    /// even where the system starts no other later. Errors: it does not start this one.
    pub fn new(threads: usize) -> io::Result<Self> {
        let (readable, tell) = UnixStream::pair()?;
        readable.set_nonblocking(true)?;
        tell.set_nonblocking(true)?;
        let shared = Shared { state: Mutex::default(), work: Condvar::new(), tell };
        let mut flusher = Self { shared: Arc::new(shared), readable, most: threads, threads: Vec::new() };
        flusher.start_thread()?;
        Ok(flusher)
    }

    fn start_thread(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.threads.push(thread::Builder::new().name("flush".into()).spawn(move || shared.work())?);
        Ok(())
    }

    /// Readable when `take` has something to give.
    #[must_use]
    pub fn signal(&self) -> &UnixStream {
        &self.readable
    }

    /// Have a job of a log done, after those of the same log that were given before.
    pub fn flush(&mut self, log: u64, job: Job) {
        let mut state = self.shared.lock();
        if let Some(waiting) = state.jobs.get_mut(&log) {
            waiting.push(job);
            return;
        }
        let busy = state.idle <= state.logs.len();
        state.jobs.insert(log, vec![job]);
        state.logs.push_back(log);
        drop(state);
        self.shared.work.notify_one();
        if busy && self.threads.len() < self.most {
            // One that cannot be started is not needed: the threads there are will come to the job.
            let _ = self.start_thread();
        }
    }

    /// The jobs done since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Done> {
        let mut state = self.shared.lock();
        // Written under the same lock, and only before the first result: one byte or none.
        let _ = (&self.readable).read(&mut [0; 1]);
        std::mem::take(&mut state.done)
    }

    /// The flushes so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.shared.lock().spent
    }

    /// Wait until every job given is done, and end the threads.
    pub fn close(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let Some(log) = state.logs.pop_front() else {
                if state.closed {
                    return;
                }
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            };
            let jobs = state.jobs.get_mut(&log).map(std::mem::take).unwrap_or_default();
            drop(state);
            let began = Instant::now();
            let failure = flush(&jobs);
            let took = began.elapsed();
            state = self.lock();
            state.spent.flushes += 1;
            state.spent.time += took;
            let silent = state.done.is_empty();
            state
                .done
                .extend(jobs.iter().map(|job| Done { ticket: job.ticket, failure: copy(failure.as_ref()) }));
            if silent {
                // Full means that there is a byte to be read already.
                let _ = (&self.tell).write(&[1]);
            }
            if state.jobs.get(&log).is_some_and(Vec::is_empty) {
                state.jobs.remove(&log);
            } else {
                state.logs.push_back(log);
            }
        }
    }
}

/// All files of the jobs, and then all directories, each once. The first failure ends it.
fn flush(jobs: &[Job]) -> Result<(), (PathBuf, io::Error)> {
    let mut seen = HashSet::new();
    for path in jobs.iter().flat_map(|job| &job.files) {
        if seen.insert(path) {
            // Opened only now: ten thousand flushes may be waiting for their turn, and each would keep a file open.
            File::open(path).and_then(|file| file.sync_data()).map_err(|error| (path.clone(), error))?;
        }
    }
    for path in jobs.iter().flat_map(|job| &job.directories) {
        if seen.insert(path) {
            File::open(path).and_then(|file| file.sync_all()).map_err(|error| (path.clone(), error))?;
        }
    }
    Ok(())
}

fn copy(failure: Result<&(), &(PathBuf, io::Error)>) -> Option<(PathBuf, io::Error)> {
    let (path, error) = failure.err()?;
    let error =
        error.raw_os_error().map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
    Some((path.clone(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("korvet-flush-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn collect(flusher: &Flusher, count: usize) -> Vec<Done> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut done = Vec::new();
        while done.len() < count {
            assert!(Instant::now() < deadline, "{} of {count} jobs were done", done.len());
            done.extend(flusher.take());
            thread::yield_now();
        }
        done
    }

    fn job(ticket: u64, file: &Path) -> Job {
        Job { ticket, files: vec![file.into()], directories: vec![] }
    }

    #[test]
    fn every_job_is_done_once_and_in_the_order_of_its_log() {
        let directory = directory("order");
        let mut flusher = Flusher::new(3).unwrap();
        for ticket in 0..300 {
            let file = directory.join((ticket % 5).to_string());
            fs::write(&file, ticket.to_string()).unwrap();
            flusher.flush(ticket % 5, Job { directories: vec![directory.clone()], ..job(ticket, &file) });
        }
        let done = collect(&flusher, 300);
        assert!(done.iter().all(|done| done.failure.is_none()), "{done:?}");
        for log in 0..5 {
            let tickets: Vec<_> =
                done.iter().map(|done| done.ticket).filter(|ticket| ticket % 5 == log).collect();
            assert!(tickets.is_sorted() && tickets.len() == 60, "log {log}: {tickets:?}");
        }
        assert!(flusher.threads.len() <= 3);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_failure_names_the_file_and_reaches_everyone_who_waited() {
        let directory = directory("failure");
        let mut flusher = Flusher::new(1).unwrap();
        let missing = directory.join("missing");
        flusher.flush(1, job(1, &missing));
        flusher.flush(2, Job { files: vec![], directories: vec![directory.clone()], ticket: 2 });
        for done in collect(&flusher, 2) {
            assert_eq!(
                done.failure.map(|(path, error)| (path, error.kind())),
                match done.ticket {
                    1 => Some((missing.clone(), io::ErrorKind::NotFound)),
                    _ => None,
                }
            );
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn one_thread_is_there_before_it_is_needed() {
        let mut flusher = Flusher::new(3).unwrap();
        assert_eq!(flusher.threads.len(), 1);
        flusher.close();
        assert!(flusher.threads.is_empty());
    }

    #[test]
    fn jobs_that_were_done_together_are_one_flush_and_a_failure_is_one_too() {
        let directory = directory("spent");
        let file = directory.join("file");
        fs::write(&file, "x").unwrap();
        let mut flusher = Flusher::new(1).unwrap();
        assert_eq!(flusher.spent(), Spent::default());
        for ticket in 0..9 {
            flusher.flush(1, job(ticket, &file));
        }
        flusher.flush(2, job(9, &directory.join("missing")));
        flusher.close();
        assert_eq!(flusher.take().len(), 10);
        let spent = flusher.spent();
        assert!((2..=10).contains(&spent.flushes), "{spent:?}");
        assert!(!spent.time.is_zero());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn closing_does_what_was_given_first() {
        let directory = directory("close");
        let file = directory.join("file");
        fs::write(&file, "x").unwrap();
        let mut flusher = Flusher::new(2).unwrap();
        for ticket in 0..50 {
            flusher.flush(ticket % 7, job(ticket, &file));
        }
        flusher.close();
        assert_eq!(flusher.take().len(), 50);
        assert!(flusher.take().is_empty());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_signal_is_readable_only_while_there_is_something() {
        let directory = directory("signal");
        let mut flusher = Flusher::new(1).unwrap();
        let read = |flusher: &Flusher| flusher.signal().read(&mut [0; 8]).map_err(|error| error.kind());
        assert_eq!(read(&flusher), Err(io::ErrorKind::WouldBlock));
        flusher.flush(1, Job { ticket: 1, files: vec![], directories: vec![directory.clone()] });
        collect(&flusher, 1);
        flusher.close();
        assert_eq!(read(&flusher), Err(io::ErrorKind::WouldBlock));
        fs::remove_dir_all(directory).unwrap();
    }
}
