//! No broker at all: what a batch's bytes cost on their way over loopback into a file and out of it over loopback again.
//! A producer that never waits, one thread that copies from socket to file, one from file to socket, a consumer that only
//! counts. It bounds what any broker that keeps records in files can reach here.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::batch::Batch;
use crate::options::Options;
use crate::schedule::{Schedule, Tally};

const PIECE: usize = 1 << 20;
const NOTHING_YET: Duration = Duration::from_micros(50);

/// Copy until the schedule stops, through a file in the working directory that is removed afterwards. Counted are whole
/// pieces that came out at the end, as records of the batch.
pub fn run(options: &Options, batch: &Batch, schedule: Schedule) -> Outcome<Tally> {
    let path = Path::new("korvet-load.copy");
    let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)?;
    fs::remove_file(path)?; // the file lives until it is closed
    let written = AtomicU64::new(0);
    let ((mut producer, accepted), (sender, mut consumer)) = (pair()?, pair()?);
    thread::scope(|scope| {
        let writing = scope.spawn(|| write(accepted, &file, &written));
        let reading = scope.spawn(|| read(sender, &file, &written, schedule.stop));
        let producing = scope.spawn(move || -> Outcome<()> {
            while Instant::now() < schedule.stop {
                producer.write_all(&batch.bytes)?;
            }
            Ok(())
        });
        let mut tally = Tally::default();
        let mut buffer = vec![0; PIECE];
        loop {
            let since = Instant::now();
            let size = consumer.read(&mut buffer)?;
            if size == 0 {
                break;
            }
            let values = size as u64 * u64::from(batch.records) * options.record_bytes as u64
                / batch.bytes.len() as u64;
            tally.count(&schedule, since, values / options.record_bytes as u64, values);
        }
        for (thread, name) in [(producing, "producer"), (writing, "writer"), (reading, "reader")] {
            thread.join().map_err(|_| format!("the {name} panicked"))??;
        }
        Ok(tally)
    })
}

fn pair() -> Outcome<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    Ok((one, listener.accept()?.0))
}

fn write(mut from: TcpStream, file: &File, written: &AtomicU64) -> Outcome<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let size = from.read(&mut buffer)?;
        if size == 0 {
            return Ok(());
        }
        let at = written.load(Ordering::Relaxed);
        file.write_all_at(&buffer[..size], at)?;
        written.store(at + size as u64, Ordering::Release);
    }
}

fn read(mut to: TcpStream, file: &File, written: &AtomicU64, stop: Instant) -> Outcome<()> {
    let mut buffer = vec![0; PIECE];
    let mut at = 0;
    while Instant::now() < stop {
        let size = (written.load(Ordering::Acquire) - at).min(PIECE as u64) as usize;
        if size == 0 {
            thread::sleep(NOTHING_YET);
            continue;
        }
        file.read_exact_at(&mut buffer[..size], at)?;
        to.write_all(&buffer[..size])?;
        at += size as u64;
    }
    Ok(())
}
