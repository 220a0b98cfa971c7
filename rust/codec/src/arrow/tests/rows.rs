use proptest::prelude::*;

use crate::arrow::lent::{Array, Bitmap, Cells, Offsets};
use crate::arrow::{ArrowRecords, PartitionBatch, ProducerRun};
use crate::batch::validate_batches;
use crate::columns::to_columns;
use crate::compression::Compression;
use crate::{Code, Result};

const LIMIT: usize = 1 << 24;
const NOW: i64 = 1_700_000_000_000;

type Cell = Option<Vec<u8>>;

/// The buffers of a column of byte strings, with a few cells in front that are not lent.
struct Buffers {
    offsets: Vec<[u8; 4]>,
    data: Vec<u8>,
    bits: Vec<u8>,
    from: usize,
}

impl Buffers {
    fn new(cells: &[Cell], from: usize) -> Self {
        let mut found = Self { offsets: vec![[0; 4]], data: Vec::new(), bits: Vec::new(), from };
        let hidden = vec![Some(b"hidden".to_vec()); from];
        for (at, cell) in hidden.iter().chain(cells).enumerate() {
            found.data.extend(cell.as_deref().unwrap_or_default());
            found.offsets.push((found.data.len() as i32).to_ne_bytes());
            found.bits.resize(at / 8 + 1, 0);
            found.bits[at / 8] |= u8::from(cell.is_some()) << (at % 8);
        }
        found
    }

    fn array(&self, text: bool) -> Array<'_> {
        let offsets = Offsets::Short(&self.offsets[self.from..]);
        let cells = if text { Cells::Text(offsets, &self.data) } else { Cells::Binary(offsets, &self.data) };
        let valid = Some(Bitmap { bytes: &self.bits, from: self.from });
        Array { length: self.offsets.len() - 1 - self.from, valid, cells }
    }
}

/// A record batch of these columns.
fn table<'a>(length: usize, columns: &[(&'a str, Array<'a>)]) -> Array<'a> {
    Array { length, valid: None, cells: Cells::Struct(columns.to_vec()) }
}

fn ints(numbers: &[[u8; 4]]) -> Array<'_> {
    Array { length: numbers.len(), valid: None, cells: Cells::Ints(numbers) }
}

/// With room for everything.
fn roomy(sequences: &[Vec<i32>]) -> ProducerRun<'_> {
    ProducerRun {
        sequences,
        keyless: 0,
        compression: Compression::None,
        max_bytes: usize::MAX,
        max_record: usize::MAX,
        producer_id: 7,
        producer_epoch: 0,
        now: NOW,
    }
}

fn values(batch: &PartitionBatch) -> Vec<Cell> {
    let found = to_columns(&batch.batch, LIMIT).unwrap().value;
    let ends = found.offsets.windows(2).zip(&found.valid);
    ends.map(|(ends, valid)| (*valid == 1).then(|| found.data[ends[0] as usize..ends[1] as usize].to_vec()))
        .collect()
}

proptest! {
    #[test]
    fn every_row_is_shipped_once_and_in_order(
        cells in prop::collection::vec(any::<(Cell, Cell)>(), 0..40),
        from in 0..9_usize,
        many in 1..5_usize,
        keyless in 0..9_usize,
        max_bytes in 0..300_usize,
        which in 0..5_usize,
    ) {
        let (keys, rows): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
        let (key, value) = (Buffers::new(&keys, from), Buffers::new(&rows, from));
        let array = table(rows.len(), &[("key", key.array(true)), ("value", value.array(false))]);
        let sequences = vec![vec![5; many]];
        let how = ProducerRun { keyless, max_bytes, compression: Compression::ALL[which], ..roomy(&sequences) };
        let batches = ArrowRecords::new(&array, Some("t")).unwrap().batches(&how).unwrap();

        let mut next = vec![5; many];
        let mut shipped: Vec<Vec<Cell>> = vec![Vec::new(); many];
        for batch in &batches {
            let header = validate_batches(&batch.batch, LIMIT).unwrap()[0].header;
            prop_assert_eq!((header.count, header.max_timestamp), (batch.records, NOW));
            prop_assert_eq!(header.base_sequence, next[batch.partition]);
            next[batch.partition] += batch.records;
            if header.compression() == 0 && batch.records > 1 {
                prop_assert!(batch.batch.len() - 61 <= max_bytes);
            }
            shipped[batch.partition].extend(values(batch));
        }
        let mut all: Vec<_> = shipped.iter().flatten().cloned().collect();
        let mut given = rows.clone();
        all.sort();
        given.sort();
        prop_assert_eq!(all, given);
        if many == 1 {
            prop_assert_eq!(&shipped[0], &rows);
        }
    }

    #[test]
    fn offsets_that_lead_anywhere_are_refused(ends in prop::collection::vec(-3..9_i32, 4), length in 0..6_usize) {
        let data = [0; 5];
        let ends_read: Vec<_> = ends.iter().map(|end| end.to_ne_bytes()).collect();
        let wide: Vec<_> = ends.iter().map(|end| i64::from(*end).to_ne_bytes()).collect();
        let good = length == 0 || (length == 3 && ends.is_sorted() && ends[0] >= 0 && ends[3] <= 5);
        for offsets in [Offsets::Short(&ends_read), Offsets::Long(&wide)] {
            let value = Array { length, valid: None, cells: Cells::Binary(offsets, &data) };
            let array = table(length, &[("value", value)]);
            prop_assert_eq!(ArrowRecords::new(&array, Some("t")).is_ok(), good);
        }
    }
}

#[test]
fn a_sequence_goes_on_after_its_last_number() {
    let value = Buffers::new(&vec![Some(vec![b'v'; 10]); 3], 0);
    let array = table(3, &[("value", value.array(false))]);
    let sequences = [vec![i32::MAX]];
    let how = ProducerRun { max_bytes: 40, ..roomy(&sequences) };
    let batches = ArrowRecords::new(&array, Some("t")).unwrap().batches(&how).unwrap();
    let first =
        |batch: &PartitionBatch| validate_batches(&batch.batch, LIMIT).unwrap()[0].header.base_sequence;
    assert_eq!(batches.iter().map(first).collect::<Vec<_>>(), [i32::MAX, 1]);
}

#[test]
fn a_partition_has_to_be_there() {
    let value = Buffers::new(&[Some(vec![]), Some(vec![])], 0);
    let ship = |numbers: [i32; 2]| -> Result<Vec<usize>> {
        let numbers = numbers.map(i32::to_ne_bytes);
        let array = table(2, &[("value", value.array(false)), ("partition", ints(&numbers))]);
        let sequences = [vec![0, 0]];
        let batches = ArrowRecords::new(&array, Some("t"))?.batches(&roomy(&sequences))?;
        Ok(batches.iter().map(|batch| batch.partition).collect())
    };
    assert_eq!(ship([1, 0]), Ok(vec![0, 1]));
    for wrong in [2, -1, i32::MIN] {
        let error = ship([0, wrong]).unwrap_err();
        assert_eq!(error.code, Code::BadColumns);
        assert!(error.message.starts_with("row 1: the topic \"t\" has no partition"), "{error}");
    }
}

#[test]
fn a_record_has_a_limit_of_its_own() {
    let value = Buffers::new(&[Some(vec![0; 10]), Some(vec![0; 100])], 0);
    let array = table(2, &[("value", value.array(false))]);
    let rows = ArrowRecords::new(&array, Some("t")).unwrap();
    let sequences = [vec![0]];
    let size = rows.batches(&roomy(&sequences)).unwrap()[0].batch.len() - 61 - 10 - 7;
    assert!(rows.batches(&ProducerRun { max_record: size, ..roomy(&sequences) }).is_ok());
    let error = rows.batches(&ProducerRun { max_record: size - 1, ..roomy(&sequences) }).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("OVERSIZE: row 1: a record of {size} bytes, and {} are allowed", size - 1)
    );
}

#[test]
fn topics_are_told_apart() {
    let cells = |texts: &[&str]| texts.iter().map(|text| Some(text.as_bytes().to_vec())).collect::<Vec<_>>();
    let value = Buffers::new(&cells(&["1", "2", "3", "4"]), 0);
    let topic = Buffers::new(&cells(&["b", "a", "a", "b"]), 3);
    let array = table(4, &[("value", value.array(false)), ("topic", topic.array(true))]);
    let rows = ArrowRecords::new(&array, None).unwrap();
    assert_eq!(rows.topics(), ["b", "a"]);
    let sequences = [vec![0], vec![0]];
    let batches = rows.batches(&roomy(&sequences)).unwrap();
    let seen: Vec<_> = batches.iter().map(|batch| (batch.topic, values(batch))).collect();
    assert_eq!(seen, [(0, cells(&["1", "4"])), (1, cells(&["2", "3"]))]);
    assert_eq!(rows.batches(&roomy(&[vec![0], vec![]])).unwrap_err().code, Code::BadValue);

    let null = Buffers::new(&[Some(b"a".to_vec()), None, None, None], 1);
    let array = table(4, &[("value", value.array(false)), ("topic", null.array(true))]);
    assert_eq!(ArrowRecords::new(&array, None).unwrap_err().message, "row 1: the column topic is null");
}
