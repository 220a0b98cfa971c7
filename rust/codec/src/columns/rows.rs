//! Rows of a producer's column: to which partition each goes, which of them go together, and one batch of them.

use std::collections::HashMap;

use crate::batch::{Builder, NO_HEADERS, Origin};
use crate::compression::Compression;
use crate::{Code, Error, Result};

/// Most bytes of a record beside key and value: attributes, time, offset, and the lengths of all.
pub const RECORD_MOST: usize = 36;

/// Rows of one partition, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRun {
    /// Where they go; -1: nobody chose.
    pub partition: i32,
    /// Their numbers.
    pub rows: Vec<usize>,
    /// Bytes of their records, at most.
    pub size: usize,
}

/// Runs of at most `most_bytes` and `most_rows` each, one row at least: full ones as they fill, then the rest by their
/// first row. `sizes`: bytes of each row's key and value; `chosen`: each row's partition, none if nobody chose any.
/// `BAD_COLUMNS` if `chosen` has another length.
pub fn group_rows(
    sizes: impl ExactSizeIterator<Item = usize>,
    chosen: Option<&[[u8; 4]]>,
    most_bytes: usize,
    most_rows: usize,
) -> Result<Vec<RowRun>> {
    if chosen.is_some_and(|chosen| chosen.len() != sizes.len()) {
        return Error::fail(Code::BadColumns, "there is not one partition for each row");
    }
    let mut open: Vec<RowRun> = Vec::new();
    let mut places: HashMap<i32, usize> = HashMap::new();
    let mut runs = Vec::new();
    for (row, size) in sizes.enumerate() {
        let partition = chosen.map_or(-1, |chosen| i32::from_ne_bytes(chosen[row]));
        let place = *places.entry(partition).or_insert_with(|| {
            open.push(RowRun { partition, rows: Vec::new(), size: 0 });
            open.len() - 1
        });
        let (run, size) = (&mut open[place], size + RECORD_MOST);
        if !run.rows.is_empty() && (run.size + size > most_bytes || run.rows.len() >= most_rows) {
            let next = RowRun { partition, rows: Vec::with_capacity(run.rows.len()), size: 0 };
            runs.push(std::mem::replace(run, next));
        }
        run.rows.push(row);
        run.size += size;
    }
    open.sort_by_key(|run| run.rows[0]);
    runs.extend(open);
    Ok(runs)
}

/// One batch of these times, keys and values; `out`: memory for it, whatever it holds; `room`: bytes of their records, at
/// most. `BAD_COUNT` for none, `OUT_OF_RANGE` for times too far apart, `OVERSIZE` beyond 2 GiB.
pub fn build_rows<'a>(
    rows: impl Iterator<Item = (i64, Option<&'a [u8]>, Option<&'a [u8]>)>,
    out: Vec<u8>,
    room: usize,
    compression: Compression,
    origin: Origin,
) -> Result<Vec<u8>> {
    let mut builder = Builder::within(out, room);
    for (place, (timestamp, key, value)) in rows.enumerate() {
        let Ok(place) = i32::try_from(place) else {
            return Error::fail(Code::Oversize, "a batch cannot have more than 2^31 records");
        };
        builder.push(place, timestamp, key, value, NO_HEADERS)?;
    }
    builder.finish(compression, 0, -1, origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(of: &[i32]) -> Vec<[u8; 4]> {
        of.iter().map(|partition| partition.to_ne_bytes()).collect()
    }

    #[test]
    fn rows_of_a_partition_stay_in_order_and_runs_keep_their_limits() {
        let chosen = partitions(&[1, 0, 1, 1, 0]);
        let sizes = [10, 10, 10, 500, 10];
        let runs = group_rows(sizes.into_iter(), Some(&chosen), 100, 10).unwrap();
        let found: Vec<_> = runs.iter().map(|run| (run.partition, run.rows.as_slice(), run.size)).collect();
        assert_eq!(found, [(1, &[0, 2][..], 92), (0, &[1, 4], 92), (1, &[3], 536)]);
        let runs = group_rows([0; 5].into_iter(), None, 1000, 2).unwrap();
        assert_eq!(runs.iter().map(|run| run.rows.len()).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(group_rows([0; 4].into_iter(), Some(&chosen), 100, 10).is_err());
        assert!(group_rows([0; 0].into_iter(), None, 100, 10).unwrap().is_empty());
    }

    #[test]
    fn a_batch_of_rows_is_that_of_their_columns() {
        let rows =
            [(9, None, Some(&b"one"[..])), (7, Some(&b"key"[..]), None), (9, Some(&b""[..]), Some(&b""[..]))];
        let origin = Origin { producer_id: 7, producer_epoch: 1, base_sequence: 5, transactional: false };
        let built = build_rows(rows.into_iter(), vec![9; 500], 200, Compression::None, origin).unwrap();
        let ends = |lengths: [i32; 3]| {
            let mut end = 0;
            [0].into_iter()
                .chain(lengths)
                .flat_map(|length| (end += length, end.to_ne_bytes()).1)
                .collect::<Vec<_>>()
        };
        let (times, keys, values) =
            ([9_i64, 7, 9].map(i64::to_ne_bytes).concat(), ends([0, 3, 0]), ends([3, 0, 0]));
        let columns: [(&str, &[u8]); 7] = [
            ("timestamp", &times),
            ("key_offsets", &keys),
            ("key", b"key"),
            ("key_valid", &[0, 1, 1]),
            ("value_offsets", &values),
            ("value", b"one"),
            ("value_valid", &[1, 0, 1]),
        ];
        assert_eq!(built, super::super::build_batch(&columns, Compression::None, 0, origin).unwrap());
        assert!(build_rows([].into_iter(), Vec::new(), 0, Compression::None, origin).is_err());
    }
}
