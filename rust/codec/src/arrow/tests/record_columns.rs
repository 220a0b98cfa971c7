use proptest::prelude::*;

use crate::arrow::*;
use crate::batch::{Builder, NO_HEADERS, Origin};
use crate::columns::to_columns;
use crate::compression::Compression;
use crate::{Code, Result};

const LIMIT: usize = 1 << 24;
const ALL: [Name; 8] = [
    Name::Key,
    Name::Value,
    Name::Topic,
    Name::Partition,
    Name::Offset,
    Name::Timestamp,
    Name::TimestampType,
    Name::Headers,
];

type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);
type Header = (Vec<u8>, Option<Vec<u8>>);

/// All of it, whatever it is.
const WANTED: Wanted<'static> = Wanted {
    topic: "orders",
    partition: 3,
    columns: &ALL,
    start: 0,
    end: i64::MAX,
    max_rows: usize::MAX,
    max_bytes: usize::MAX,
    limit: LIMIT,
    aborted: &[],
};

fn batch(base: i64, rows: &[Pair], headers: &[Header], compression: Compression) -> Vec<u8> {
    let mut builder = Builder::new(0);
    for (place, (key, value)) in (0..).zip(rows) {
        builder.push(place, 1000 + i64::from(place), key.as_deref(), value.as_deref(), headers).unwrap();
    }
    builder.finish(compression, base, 0, Origin::NONE).unwrap()
}

fn one(base: i64) -> Vec<u8> {
    batch(base, &[(None, Some(vec![b'v'; 10]))], &[], Compression::None)
}

fn offsets(records: &RecordColumns) -> Vec<i64> {
    match &records.columns.iter().find(|(name, _)| *name == Name::Offset).unwrap().1 {
        Column::Longs(offsets) => offsets.clone(),
        other => panic!("offsets are {other:?}"),
    }
}

fn bits(nulls: &Nulls, cells: usize) -> Vec<u8> {
    let Some(bitmap) = nulls.bitmap() else { return vec![1; cells] };
    assert_eq!(bitmap.len(), cells.div_ceil(8));
    (0..cells).map(|at| bitmap[at / 8] >> (at % 8) & 1).collect()
}

/// The size that the columns say they have, counted again.
fn size(records: &RecordColumns) -> usize {
    let cells = |cells: &Cells| {
        4 * cells.offsets.len() + cells.data.len() + cells.nulls.bitmap().map_or(0, <[u8]>::len)
    };
    let column = |column: &Column| match column {
        Column::Binary(found) | Column::Text(found) => cells(found),
        Column::Ints(numbers) => 4 * numbers.len(),
        Column::Longs(numbers) | Column::Times(numbers) => 8 * numbers.len(),
        Column::Headers(headers) => {
            let lists = 4 * headers.offsets.len() + headers.nulls.bitmap().map_or(0, <[u8]>::len);
            lists + cells(&headers.keys) + cells(&headers.values)
        }
    };
    records.columns.iter().map(|(_, found)| column(found)).sum()
}

proptest! {
    #[test]
    fn records_are_what_columns_gives(
        rows in prop::collection::vec(any::<Pair>(), 1..30),
        headers in prop::collection::vec(("[a-z]{0,3}".prop_map(String::into_bytes), any::<Option<Vec<u8>>>()), 0..3),
        which in 0..5_usize,
    ) {
        let data = batch(70, &rows, &headers, Compression::ALL[which]);
        let records = WANTED.read(&data).unwrap();
        let known = to_columns(&data, LIMIT).unwrap();
        prop_assert_eq!((records.rows, records.next, records.whole), (rows.len(), 70 + rows.len() as i64, true));
        prop_assert_eq!(records.size, size(&records));
        for (name, column) in &records.columns {
            match (name, column) {
                (Name::Key, Column::Binary(cells)) => {
                    prop_assert_eq!((&cells.offsets, &cells.data), (&known.key.offsets, &known.key.data));
                    prop_assert_eq!(bits(&cells.nulls, rows.len()), &known.key.valid[..]);
                }
                (Name::Value, Column::Binary(cells)) => {
                    prop_assert_eq!((&cells.offsets, &cells.data), (&known.value.offsets, &known.value.data));
                    prop_assert_eq!(bits(&cells.nulls, rows.len()), &known.value.valid[..]);
                }
                (Name::Topic, Column::Text(cells)) => {
                    prop_assert_eq!(&cells.data, &b"orders".repeat(rows.len()));
                    prop_assert_eq!(cells.offsets.last(), Some(&(6 * rows.len() as i32)));
                }
                (Name::Partition, Column::Ints(numbers)) => prop_assert_eq!(numbers, &vec![3; rows.len()]),
                (Name::Offset, Column::Longs(numbers)) => prop_assert_eq!(numbers, &known.offset),
                (Name::Timestamp, Column::Times(times)) => {
                    prop_assert_eq!(times, &known.timestamp.iter().map(|ms| ms * 1000).collect::<Vec<_>>());
                }
                (Name::TimestampType, Column::Ints(numbers)) => prop_assert_eq!(numbers, &vec![0; rows.len()]),
                (Name::Headers, Column::Headers(found)) => {
                    prop_assert_eq!(&found.offsets, &known.header_offsets);
                    prop_assert_eq!(&found.keys.data, &known.header_key.data);
                    prop_assert_eq!(&found.values.data, &known.header_value.data);
                    prop_assert_eq!(bits(&found.values.nulls, found.values.len()), &known.header_value.valid[..]);
                    let none = if headers.is_empty() { rows.len() } else { 0 };
                    prop_assert_eq!(found.nulls.count(), none);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn columns_of_any_size_are_the_whole(
        sizes in prop::collection::vec(1..5_usize, 1..8),
        max_rows in 0..6_usize,
        max_bytes in 0..800_usize,
    ) {
        let mut data = Vec::new();
        let mut end = 0;
        for size in sizes {
            data.extend(batch(end, &vec![(None, Some(vec![0; 20])); size], &[], Compression::None));
            end += size as i64;
        }
        let (mut start, mut found) = (0, Vec::new());
        loop {
            let records = Wanted { start, max_rows, max_bytes, ..WANTED }.read(&data).unwrap();
            prop_assert!(records.rows > 0);
            found.extend(offsets(&records));
            start = records.next;
            if records.whole {
                break;
            }
        }
        prop_assert_eq!(found, (0..end).collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_are_columns_or_an_error(data: Vec<u8>, start: i64, end: i64) {
        if let Ok(records) = (Wanted { start, end, ..WANTED }).read(&data) {
            prop_assert_eq!((records.rows, records.next), (0, start));
        }
    }
}

#[test]
fn only_what_is_wanted_is_there_in_the_order_wanted() {
    let columns = Name::parse(&["offset", "key"]).unwrap();
    let records = Wanted { columns: &columns, ..WANTED }.read(&one(5)).unwrap();
    assert_eq!(records.columns.iter().map(|(name, _)| name.text()).collect::<Vec<_>>(), ["offset", "key"]);
    let none = Wanted { columns: &[], ..WANTED }.read(&one(5)).unwrap();
    assert_eq!((none.rows, none.columns.len(), none.size), (1, 0, 0));
}

#[test]
fn names_are_known_and_wanted_once() {
    for (place, name) in ALL.into_iter().enumerate() {
        assert_eq!(Name::parse(&[name.text()]), Ok(vec![ALL[place]]));
    }
    assert_eq!(Name::parse(&["colour"]).unwrap_err().code, Code::BadColumns);
    assert_eq!(Name::parse(&["key", "value", "key"]).unwrap_err().code, Code::BadColumns);
}

#[test]
fn a_batch_that_is_cut_off_is_left() {
    let data = [one(0), one(1)].concat();
    for end in data.len() / 2..data.len() {
        let records = WANTED.read(&data[..end]).unwrap();
        assert_eq!((offsets(&records), records.next, records.whole), (vec![0], 1, true));
    }
}

#[test]
fn batches_outside_of_the_range_are_not_looked_into() {
    let mut bad = one(0);
    bad[70] ^= 1;
    let data = [&bad[..], &one(1), &one(2), &bad].concat();
    assert_eq!(WANTED.read(&data).unwrap_err().code, Code::BadCrc);
    let records = Wanted { start: 1, end: 2, ..WANTED }.read(&data).unwrap();
    assert_eq!((offsets(&records), records.next), (vec![1], 2));
}

#[test]
fn an_error_names_the_batch() {
    let mut bad = one(77);
    bad[70] ^= 1;
    let error = WANTED.read(&[one(76), bad].concat()).unwrap_err();
    assert_eq!(error.to_string(), "BAD_CRC: the batch at offset 77: a batch fails its checksum");
}

#[test]
fn times_have_to_fit_microseconds() {
    let far = |timestamp: i64| -> Result<RecordColumns> {
        let mut builder = Builder::new(0);
        builder.push(0, timestamp, None, None, NO_HEADERS).unwrap();
        WANTED.read(&builder.finish(Compression::None, 0, 0, Origin::NONE).unwrap())
    };
    assert!(far(i64::MAX / 1000).is_ok());
    assert!(far(i64::MIN / 1000).is_ok());
    assert_eq!(far(i64::MAX / 1000 + 1).unwrap_err().code, Code::OutOfRange);
}

#[test]
fn a_column_of_one_text_is_bounded_before_it_is_made() {
    assert_eq!(Cells::repeated(&[b't'; 249], 1 << 24).unwrap_err().code, Code::Oversize);
    assert_eq!(Cells::repeated(b"ab", 2).unwrap().offsets, [0, 2, 4]);
    assert_eq!(Cells::repeated(b"ab", 0).unwrap().offsets, [0]);
}
