//! Columns of a producer: read once, cut into runs of one partition each, built into batches from where they lie.

use std::cell::Cell;
use std::sync::Arc;

use korvet_codec::arrow::partition_for;
use korvet_codec::batch::Origin;
use korvet_codec::columns;
use korvet_codec::{Code, Error};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView};

use crate::arrow::import::Lent;
use crate::batch::{read_kind, run};
use crate::buffer::{Column, DETACH_ABOVE, Input};
use crate::error::{OrRaise, bad_value, raise};

/// A column's cells, and whom they belong to.
struct Cells {
    /// In objects of `_owner` that nobody changes: `'static` stands for as long as those live, which is as long as this.
    cells: Vec<Option<&'static [u8]>>,
    _owner: Owner,
}

#[expect(dead_code, reason = "kept alive, not read")]
enum Owner {
    Objects(Vec<Py<PyBytes>>),
    Array(Lent),
}

impl Cells {
    fn new(name: &str, column: &Bound<'_, PyAny>) -> PyResult<Self> {
        match column.cast::<PyList>() {
            Ok(list) => Self::of_list(name, list),
            Err(_) => Self::of_array(name, column),
        }
    }

    fn of_list(name: &str, list: &Bound<'_, PyList>) -> PyResult<Self> {
        let (mut cells, mut objects) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
        for (row, cell) in list.iter().enumerate() {
            if cell.is_none() {
                cells.push(None);
                continue;
            }
            let object = match cell.cast_into::<PyBytes>() {
                Ok(object) => object,
                Err(other) => copy(name, row, &other.into_inner())?,
            };
            // SAFETY: bytes do not change or move, and `objects` keeps these.
            cells.push(Some(unsafe { lasting(object.as_bytes()) }));
            objects.push(object.unbind());
        }
        Ok(Self { cells, _owner: Owner::Objects(objects) })
    }

    fn of_objects(py: Python<'_>, given: impl Iterator<Item = Option<Py<PyBytes>>>) -> Self {
        let (mut cells, mut objects) = (Vec::new(), Vec::new());
        for cell in given {
            // SAFETY: bytes do not change or move, and `objects` keeps these.
            cells.push(cell.as_ref().map(|object| unsafe { lasting(object.as_bytes(py)) }));
            objects.extend(cell);
        }
        Self { cells, _owner: Owner::Objects(objects) }
    }

    fn of_array(name: &str, column: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lent = Lent::new(column)?;
        let cells = lent.array().binary(name).or_raise(column.py())?;
        // SAFETY: the buffers lie outside of `lent`, which keeps them, and nobody writes to them.
        let cells = cells.into_iter().map(|cell| cell.map(|cell| unsafe { lasting(cell) })).collect();
        Ok(Self { cells, _owner: Owner::Array(lent) })
    }
}

/// # Safety
/// The bytes live and stay as they are for as long as the result is used.
unsafe fn lasting(cell: &[u8]) -> &'static [u8] {
    // SAFETY: as above.
    unsafe { &*std::ptr::from_ref(cell) }
}

fn copy<'py>(name: &str, row: usize, cell: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if cell.is_instance_of::<PyByteArray>() || cell.is_instance_of::<PyMemoryView>() {
        return PyBytes::type_object(cell.py()).call1((cell,))?.cast_into().map_err(Into::into);
    }
    let kind = cell.get_type().name()?;
    Err(PyTypeError::new_err(format!("row {row} of {name} is {kind}; send_many takes bytes or None")))
}

struct Columns {
    values: Cells,
    keys: Option<Cells>,
}

impl Columns {
    fn key(&self, row: usize) -> Option<&[u8]> {
        self.keys.as_ref().and_then(|keys| keys.cells[row])
    }

    fn size(&self, row: usize) -> usize {
        self.key(row).map_or(0, <[u8]>::len) + self.values.cells[row].map_or(0, <[u8]>::len)
    }
}

/// A producer's column of values, with one of keys or None: each a list of bytes and None (views of bytes are copied), or
/// an Arrow array of binary. They are read in place, and must not be written to while the rows are used.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct ColumnRows(Arc<Columns>);

#[pymethods]
impl ColumnRows {
    /// Raises `TypeError` naming the row for anything but bytes, `BAD_COLUMNS` for an array of another type, and
    /// `BAD_VALUE` for columns of different lengths.
    #[new]
    fn new(py: Python<'_>, keys: Option<Bound<'_, PyAny>>, values: Bound<'_, PyAny>) -> PyResult<Self> {
        let values = Cells::new("values", &values)?;
        let keys = keys.map(|keys| Cells::new("keys", &keys)).transpose()?;
        if let Some(keys) = keys.as_ref().filter(|keys| keys.cells.len() != values.cells.len()) {
            let (keys, values) = (keys.cells.len(), values.cells.len());
            return Err(bad_value(py, format!("{keys} keys for {values} values")));
        }
        Ok(Self(Arc::new(Columns { values, keys })))
    }

    /// How many rows.
    fn __len__(&self) -> usize {
        self.0.values.cells.len()
    }

    /// The partition of each row's key, out of `partitions`, as Java's client chooses it (murmur2); -1 for a null key.
    /// Raises `BAD_VALUE` for no partitions.
    fn choose(&self, py: Python<'_>, partitions: i32) -> PyResult<Column> {
        let Some(many) = usize::try_from(partitions).ok().filter(|many| *many > 0) else {
            return Err(bad_value(py, format!("{partitions} partitions, and one at least is needed")));
        };
        let choose = |row| self.0.key(row).map_or(-1, |key| partition_for(key, many) as i32);
        let chosen: Vec<i32> = py.detach(|| (0..self.__len__()).map(choose).collect());
        Ok(chosen.into())
    }

    /// Runs of rows for one partition each, at most `most_bytes` and `most_rows` of them, one row at least: full ones as
    /// they fill, then the rest by their first row. `chosen`: i[n], the partition of each row; None: -1 for all.
    ///
    /// Raises `BAD_COLUMNS` if `chosen` is not one number for each row.
    fn runs(
        &self,
        py: Python<'_>,
        chosen: Option<Input>,
        most_bytes: usize,
        most_rows: usize,
    ) -> PyResult<Vec<RowRun>> {
        let work = || {
            let sizes = (0..self.__len__()).map(|row| self.0.size(row));
            let chosen = chosen.as_ref().map(|chosen| chosen.as_slice().as_chunks().0);
            columns::group_rows(sizes, chosen, most_bytes, most_rows)
        };
        let runs = run(py, self.__len__() * size_of::<usize>(), work).or_raise(py)?;
        Ok(runs.into_iter().map(|run| RowRun { columns: Arc::clone(&self.0), run }).collect())
    }
}

impl ColumnRows {
    /// Keys and values, the same number of both.
    pub(crate) fn of_cells(
        py: Python<'_>,
        keys: impl Iterator<Item = Option<Py<PyBytes>>>,
        values: impl Iterator<Item = Option<Py<PyBytes>>>,
    ) -> Self {
        let (keys, values) = (Some(Cells::of_objects(py, keys)), Cells::of_objects(py, values));
        Self(Arc::new(Columns { values, keys }))
    }
}

/// Rows of a `ColumnRows` that go to one partition, in order.
#[pyclass(frozen, module = "korvet_fast._native")]
pub(crate) struct RowRun {
    columns: Arc<Columns>,
    run: columns::RowRun,
}

#[pymethods]
impl RowRun {
    /// How many rows.
    fn __len__(&self) -> usize {
        self.run.rows.len()
    }

    /// Where they go; -1: nobody chose.
    #[getter]
    fn partition(&self) -> i32 {
        self.run.partition
    }

    /// Bytes of their records in a batch, at most.
    #[getter]
    fn size(&self) -> usize {
        self.run.size
    }

    /// The numbers of the rows.
    fn rows(&self) -> Vec<usize> {
        self.run.rows.clone()
    }

    /// Their keys; None for a null, and for all without a column of keys.
    fn keys<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let cell = |row: &usize| self.columns.key(*row).map(|key| PyBytes::new(py, key));
        self.run.rows.iter().map(cell).collect()
    }

    /// Their values.
    fn values<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let cell = |row: &usize| self.columns.values.cells[*row].map(|value| PyBytes::new(py, value));
        self.run.rows.iter().map(cell).collect()
    }

    /// The first and the second half.
    fn halves(&self) -> (Self, Self) {
        let (first, second) = self.run.rows.split_at(self.run.rows.len() / 2);
        (self.part(first), self.part(second))
    }

    /// One version 2 batch of them, all with the time `timestamp` in ms. The checksum is set, the leader epoch is -1. -1
    /// for producer id, epoch and sequence if there is no idempotent producer. `compression`: 16 more say that the batch is
    /// part of a transaction.
    ///
    /// Raises `BAD_COUNT` for no rows, `UNKNOWN_COMPRESSION`, and `OVERSIZE` beyond 2 GiB.
    fn build<'py>(
        &self,
        py: Python<'py>,
        timestamp: i64,
        compression: u8,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
    ) -> PyResult<Built<'py>> {
        let (compression, transactional) = read_kind(compression).or_raise(py)?;
        let origin = Origin { producer_id, producer_epoch, base_sequence, transactional };
        let work = || {
            let cells = self
                .run
                .rows
                .iter()
                .map(|row| (timestamp, self.columns.key(*row), self.columns.values.cells[*row]));
            columns::build_rows(cells, Vec::new(), self.run.size, compression, origin)
        };
        hand_over(py, run(py, self.run.size, work).or_raise(py)?)
    }
}

impl RowRun {
    fn part(&self, rows: &[usize]) -> Self {
        let size = |row: &usize| self.columns.size(*row) + columns::RECORD_MOST;
        let run = columns::RowRun {
            partition: self.run.partition,
            rows: rows.to_vec(),
            size: rows.iter().map(size).sum(),
        };
        Self { columns: Arc::clone(&self.columns), run }
    }
}

/// One version 2 batch of columns as `ColumnRows` takes them. `timestamps`: q[n], in ms. The rest as `RowRun.build`.
///
/// Raises as `ColumnRows` and `RowRun.build`, `BAD_COLUMNS` if there is not one time for each value, and `OUT_OF_RANGE` for
/// times too far apart.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one call per batch says all there is to say")]
pub(crate) fn build_rows<'py>(
    py: Python<'py>,
    keys: Option<Bound<'py, PyAny>>,
    values: Bound<'py, PyAny>,
    timestamps: Input,
    compression: u8,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
) -> PyResult<Built<'py>> {
    let ColumnRows(columns) = ColumnRows::new(py, keys, values)?;
    let (compression, transactional) = read_kind(compression).or_raise(py)?;
    let origin = Origin { producer_id, producer_epoch, base_sequence, transactional };
    let (times, rest) = timestamps.as_slice().as_chunks();
    if times.len() != columns.values.cells.len() || !rest.is_empty() {
        return Err(raise(py, &Error::new(Code::BadColumns, "there is not one time for each value")));
    }
    let count = columns.values.cells.len();
    let size = (0..count).map(|row| columns.size(row) + columns::RECORD_MOST).sum();
    let work = || {
        let row = |row: usize| (i64::from_ne_bytes(times[row]), columns.key(row), columns.values.cells[row]);
        columns::build_rows((0..count).map(row), Vec::new(), size, compression, origin)
    };
    hand_over(py, run(py, size, work).or_raise(py)?)
}

/// A batch that was built.
#[derive(IntoPyObject)]
pub(crate) enum Built<'py> {
    Copy(Bound<'py, PyBytes>),
    View(Bound<'py, PyMemoryView>),
}

/// Bytes of a batch up to which a copy takes less than a view, which is three objects for the garbage collector.
pub(crate) const SMALL: usize = DETACH_ABOVE;

thread_local! {
    /// Memory in which small batches are built, one after the other.
    static SMALL_BATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A batch that is small, or about so, built by `work` in the memory it is given.
pub(crate) fn build_small(
    py: Python<'_>,
    work: impl FnOnce(Vec<u8>) -> korvet_codec::Result<Vec<u8>>,
) -> PyResult<Built<'_>> {
    let batch = work(SMALL_BATCH.take()).or_raise(py)?;
    if batch.len() > SMALL {
        return hand_over(py, batch);
    }
    let built = Built::Copy(PyBytes::new(py, &batch));
    SMALL_BATCH.set(batch);
    Ok(built)
}

pub(crate) fn hand_over(py: Python<'_>, batch: Vec<u8>) -> PyResult<Built<'_>> {
    if batch.len() <= SMALL {
        return Ok(Built::Copy(PyBytes::new(py, &batch)));
    }
    PyMemoryView::from(&Bound::new(py, Column::from(batch))?.into_any()).map(Built::View)
}

/// Partitions and offsets of `count` rows, in their order. `ended`: runs, where each went, and the offset of its first
/// row, -1 if that is not known; the others follow it. Rows of no run have -1 and -1.
///
/// Raises `BAD_VALUE` for a row that is not below `count`.
#[pyfunction]
pub(crate) fn row_places(
    py: Python<'_>,
    ended: Vec<(Bound<'_, RowRun>, i32, i64)>,
    count: usize,
) -> PyResult<(Vec<i32>, Vec<i64>)> {
    let (mut partitions, mut offsets) = (vec![-1; count], vec![-1; count]);
    for (run, partition, first) in ended {
        for (at, row) in run.get().run.rows.iter().enumerate() {
            if *row >= count {
                return Err(bad_value(py, format!("row {row} of {count}")));
            }
            partitions[*row] = partition;
            if first >= 0 {
                offsets[*row] = first + at as i64;
            }
        }
    }
    Ok((partitions, offsets))
}
