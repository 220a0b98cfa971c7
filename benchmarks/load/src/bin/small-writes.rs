//! What a request to many small partitions costs the kernel: its batches written in four ways, in turns.
//!
//! `small-writes DIRECTORY [FILES] [BYTES] [ROUNDS]` prints the microseconds of a request, in the median, and each way's
//! ratio to the first one. *Each file*: one write per file, as the broker does. *Two threads*: half of them from a
//! second thread, which waits for it without sleeping. *Journal*: one vectored write into a single file. *Journal, then
//! files*: the same, and each file gets its 64 KiB in one write once as much has come together.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

const TOGETHER: usize = 64 << 10; // bytes that a file gets at once out of the journal
const STOP: usize = usize::MAX;
const REQUESTS: usize = 200; // of one round

struct Target {
    files: Vec<File>,
    journal: File,
}

impl Target {
    fn new(directory: &Path, files: usize) -> io::Result<Self> {
        fs::create_dir(directory)?;
        let open = |name: String| {
            OpenOptions::new().create(true).write(true).truncate(true).open(directory.join(name))
        };
        let files = (0..files).map(|number| open(number.to_string())).collect::<io::Result<_>>()?;
        Ok(Self { files, journal: open("journal".into())? })
    }

    /// Write the same to some of the files, each at its end: they have `before` such pieces.
    fn each(&self, some: Range<usize>, before: usize, piece: &[u8]) -> io::Result<()> {
        let at = (before * piece.len()) as u64;
        self.files[some].iter().try_for_each(|file| file.write_all_at(piece, at))
    }

    fn journal(&mut self, batch: &[u8]) -> io::Result<()> {
        let size = self.files.len() * batch.len();
        let written = self.journal.write_vectored(&vec![IoSlice::new(batch); self.files.len()])?;
        if written == size { Ok(()) } else { Err(io::Error::other(format!("{written} bytes of {size}"))) }
    }
}

/// Microseconds of a request of each way.
fn measure(directory: &Path, files: usize, batch: &[u8]) -> io::Result<[f64; 4]> {
    let mut found = [0.0; 4];
    let target = Target::new(&directory.join("each"), files)?;
    let mut before = 0;
    found[0] = time(|| {
        target.each(0..files, before, batch)?;
        before += 1;
        Ok(())
    })?;
    found[1] = two_threads(&directory.join("threads"), files, batch)?;
    let mut target = Target::new(&directory.join("journal"), files)?;
    found[2] = time(|| target.journal(batch))?;
    let mut target = Target::new(&directory.join("then"), files)?;
    let (mut waiting, mut before, piece) = (0, 0, vec![1; TOGETHER / batch.len() * batch.len()]);
    found[3] = time(|| {
        target.journal(batch)?;
        waiting += batch.len();
        if waiting == piece.len() {
            target.each(0..files, before, &piece)?;
            before += 1;
            waiting = 0;
        }
        Ok(())
    })?;
    Ok(found)
}

fn two_threads(directory: &Path, files: usize, batch: &[u8]) -> io::Result<f64> {
    let target = Arc::new(Target::new(directory, files)?);
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let half = files / 2;
    let other = {
        let (target, begun, ended, batch) = (target.clone(), begun.clone(), ended.clone(), batch.to_vec());
        thread::spawn(move || -> io::Result<()> {
            let mut done = 0;
            loop {
                match begun.load(Ordering::Acquire) {
                    STOP => return Ok(()),
                    asked if asked > done => {
                        target.each(half..files, done, &batch)?;
                        done += 1;
                        ended.store(done, Ordering::Release);
                    }
                    _ => std::hint::spin_loop(),
                }
            }
        })
    };
    let mut number = 0;
    let found = time(|| {
        begun.store(number + 1, Ordering::Release);
        target.each(0..half, number, batch)?;
        number += 1;
        while ended.load(Ordering::Acquire) < number && !other.is_finished() {
            // it ends early by an error
            std::hint::spin_loop();
        }
        Ok(())
    });
    begun.store(STOP, Ordering::Release);
    other.join().map_err(|_| io::Error::other("the second thread ended in a panic"))??;
    found
}

fn time(mut request: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let began = Instant::now();
    for _ in 0..REQUESTS {
        request()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    let mut words = env::args().skip(1);
    let directory =
        PathBuf::from(words.next().ok_or_else(|| io::Error::other("which directory?"))?).join("small-writes");
    let mut number =
        |otherwise: usize| words.next().map_or(Ok(otherwise), |word| word.parse().map_err(io::Error::other));
    let (files, bytes, rounds) = (number(100)?, number(1024)?, number(9)?);
    let batch = vec![1; bytes];
    let mut found: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        fs::create_dir(&directory)?;
        let round = measure(&directory, files, &batch);
        fs::remove_dir_all(&directory)?;
        for (way, time) in round?.into_iter().enumerate() {
            found[way].push(time);
        }
    }
    let ways = ["each file", "two threads", "journal", "journal, then files"];
    let mut out = io::stdout().lock();
    for (way, times) in ways.iter().zip(&found) {
        let ratio = median(times.iter().zip(&found[0]).map(|(time, first)| time / first).collect());
        writeln!(out, "{way}: {:.0} µs, {ratio:.2} x", median(times.clone()))?;
    }
    Ok(())
}
