//! Records into streams and back.

mod append;

use crate::batch::{Builder, Origin};
use crate::compression::Compression;

pub(super) const LIMIT: usize = 1 << 24;

/// Key, value and headers of one record.
pub(super) type Row<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, &'a [(&'a [u8], Option<&'a [u8]>)]);

/// A batch of these records, all at one time.
pub(super) fn batch(time: i64, rows: &[Row<'_>], compression: Compression) -> Vec<u8> {
    let mut builder = Builder::new(0);
    for (delta, (key, value, headers)) in (0..).zip(rows) {
        builder.push(delta, time, *key, *value, headers).unwrap();
    }
    builder.finish(compression, 0, Origin::NONE).unwrap()
}
