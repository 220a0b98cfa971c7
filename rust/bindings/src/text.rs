//! The text protocol's bytes: lines, runs of PRODUCE lines, messages.
#![expect(
    clippy::unused_self,
    reason = "what cuts a stream has all of these methods, also where it has little to say"
)]

use korvet_codec::text::{self, Encoding, Limits, Outcome, TopicPlan};
use korvet_codec::{Code, Error};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use crate::batch::run;
use crate::buffer::Input;
use crate::error::OrRaise;

/// Cuts a byte stream into lines without their ends (`\n` or `\r\n`), and PRODUCE lines that follow each other into runs.
///
/// A run is given as one piece, with the ends of its lines, 64 KiB at most unless one line is longer; `ProduceRun` reads
/// it. A line of more than `limit` bytes is given as a piece that is one line end, and nothing comes after it.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct Lines(text::Lines);

#[pymethods]
impl Lines {
    /// Lines of at most `limit` bytes each, their ends not counted.
    #[new]
    fn new(limit: usize) -> Self {
        Self(text::Lines::new(limit))
    }

    /// Bytes held now.
    #[getter]
    fn pending(&self) -> usize {
        self.0.pending()
    }

    /// Always 0: how long a line will be is not known before its end is there.
    #[getter]
    fn announced(&self) -> usize {
        0
    }

    /// The lines and runs that `data` completes, `most` of them; what is behind them is kept for the next call.
    #[pyo3(signature = (data, most = usize::MAX))]
    fn feed<'py>(&mut self, py: Python<'py>, data: Input, most: usize) -> Vec<Bound<'py, PyByteArray>> {
        let mut given = Vec::new();
        self.0.feed(data.as_slice(), most, |line| given.push(PyByteArray::new(py, line)));
        given
    }

    /// Always None: all bytes go through `feed`.
    fn rest<'py>(&self) -> Option<Bound<'py, PyMemoryView>> {
        None
    }

    /// There is no place that bytes could have been put into: always `BAD_VALUE`.
    fn advance<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        Err(Error::new(Code::BadValue, format!("there is no room for {count} bytes"))).or_raise(py)
    }
}

/// A run of PRODUCE lines, as `Lines` gives it: read, made into batches, answered.
#[pyclass(module = "korvet_fast._native")]
pub(crate) struct ProduceRun(text::ProduceRun);

/// The number of its topic in the run, its partition, and the batch.
type Built<'py> = (usize, u32, Bound<'py, PyByteArray>);

#[pymethods]
impl ProduceRun {
    /// Read the lines of `data`. What is wrong with one of them is told in its answer.
    #[new]
    fn new(data: Input) -> Self {
        Self(text::ProduceRun::new(data.as_slice().to_vec()))
    }

    /// The topics that lines name, in the order of their first lines; legal names all.
    #[getter]
    fn topics(&self) -> Vec<&str> {
        self.0.topics().collect()
    }

    /// Whether the lines ask for acks=all: all of them do, or none.
    #[getter]
    fn all(&self) -> bool {
        self.0.all()
    }

    /// Make the records into sealed batches with base offset 0, all of the time `now` in ms, each as (number of its topic
    /// in `topics`, partition, batch); and the second number of each topic after it.
    ///
    /// `plans`: of each topic (how many partitions, 0: no records of it; the turn of the next record without a key; bytes
    /// that a batch of several records may have). A key chooses FNV-1a of 32 bits modulo partitions.
    fn build<'py>(
        &mut self,
        py: Python<'py>,
        plans: Vec<(u32, u32, usize)>,
        now: i64,
    ) -> PyResult<(Vec<Built<'py>>, Vec<u32>)> {
        let mut plans: Vec<_> = plans
            .into_iter()
            .map(|(partitions, next, max_bytes)| TopicPlan { partitions, next, max_bytes })
            .collect();
        let built = self.0.build(&mut plans, now).or_raise(py)?;
        let batches =
            built.iter().map(|one| (one.topic, one.partition, PyByteArray::new(py, &one.batch))).collect();
        Ok((batches, plans.iter().map(|plan| plan.next).collect()))
    }

    /// The answers to all lines, in their order, each with its end.
    ///
    /// `outcomes`: of each batch (an error as `CODE|message`, or nothing; its first offset; the high watermark).
    /// `refused`: of each topic without partitions an error likewise.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        outcomes: Vec<(String, i64, i64)>,
        refused: Vec<String>,
    ) -> Bound<'py, PyBytes> {
        let outcomes: Vec<Outcome<'_>> = outcomes
            .iter()
            .map(
                |(error, base, watermark)| {
                    if error.is_empty() { Ok((*base, *watermark)) } else { Err(&**error) }
                },
            )
            .collect();
        let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
        PyBytes::new(py, &self.0.answer(&outcomes, &refused))
    }
}

/// (text, messages, next, full): the messages of these batches from offset `start` up to `limit` (excluded), written as
/// `offset:value,offset:value`.
///
/// `encoding` of values: 0 plain (line ends, NUL and what is no UTF-8 become U+FFFD), 1 percent, 2 base64. At most so many
/// `messages`, and no more after `size` bytes of text; a value may have `value` bytes, and batches may decompress to
/// `decompressed`. `next`: the offset to go on from; `full`: a limit ended it. Raises `OVERSIZE` for a first value that
/// is too large, `DECOMPRESSION_LIMIT`, `BAD_VALUE` for another encoding, and what broken batches give.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "four of them are limits")]
pub(crate) fn write_messages(
    py: Python<'_>,
    batches: Input,
    start: i64,
    limit: i64,
    encoding: u8,
    messages: usize,
    size: usize,
    value: usize,
    decompressed: usize,
) -> PyResult<(Bound<'_, PyByteArray>, usize, i64, bool)> {
    let encoding = match encoding {
        0 => Encoding::Plain,
        1 => Encoding::Percent,
        2 => Encoding::Base64,
        _ => return Err(Error::new(Code::BadValue, "there is no such encoding")).or_raise(py),
    };
    let (data, limits) = (batches.as_slice(), Limits { messages, bytes: size, value, decompressed });
    let mut out = Vec::with_capacity(data.len().min(size));
    let work = || text::write_messages(data, start, limit, encoding, limits, &mut out);
    // Short work is not worth letting go of the interpreter, which other threads would take meanwhile.
    let done = run(py, decompressed / 16, work).or_raise(py)?;
    Ok((PyByteArray::new(py, &out), done.messages, done.next, done.full))
}
