//! Batches made by the builder, good and damaged, through every entrance.

mod damage;
mod rules;
mod stamps;

use super::builder::{Builder, Origin};
use crate::compression::Compression;

const LIMIT: usize = 1 << 26;

/// A record to be: time, key, value, headers.
type Plain = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn build(records: &[Plain], compression: Compression, base_offset: i64, origin: Origin) -> Vec<u8> {
    let mut builder = Builder::new(0);
    for (place, (timestamp, key, value, headers)) in (0..).zip(records) {
        let headers: Vec<_> = headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        builder.push(place, *timestamp, key.as_deref(), value.as_deref(), &headers).unwrap();
    }
    builder.finish(compression, base_offset, -1, origin).unwrap()
}

/// Three records: plain, with headers, a tombstone. Times 1000, 3000, 2000.
fn three(compression: Compression) -> Vec<u8> {
    let headers = vec![(b"h".to_vec(), Some(b"1".to_vec())), (b"h".to_vec(), None)];
    let records = [
        (1000, None, Some(b"one".to_vec()), vec![]),
        (3000, Some(b"k".to_vec()), Some(vec![b'x'; 300]), headers),
        (2000, Some(b"k".to_vec()), None, vec![]),
    ];
    build(&records, compression, 0, Origin::NONE)
}

/// `batch` with other bytes at a place, its checksum mended.
fn with<const N: usize>(mut batch: Vec<u8>, at: usize, bytes: [u8; N]) -> Vec<u8> {
    super::header::put(&mut batch, at, bytes);
    sealed(batch)
}

/// `batch` with its length and checksum mended.
fn sealed(mut batch: Vec<u8>) -> Vec<u8> {
    let length = batch.len() as i32 - 12;
    super::header::put(&mut batch, 8, length.to_be_bytes());
    let crc = super::header::checksum(&batch);
    super::header::put(&mut batch, 17, crc.to_be_bytes());
    batch
}
