//! Records into streams and back.

mod append;
mod append_batches;
mod batches;
mod json;
mod page;

use crate::batch::{Builder, Origin};
use crate::compression::Compression;
use crate::resp::{announcement, encode_commands, encoded_size};

pub(super) const LIMIT: usize = 1 << 24;

/// Key, value and headers of one record.
pub(super) type Row<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, &'a [(&'a [u8], Option<&'a [u8]>)]);

/// A batch of these records, all at one time.
pub(super) fn batch(time: i64, rows: &[Row<'_>], compression: Compression) -> Vec<u8> {
    let mut builder = Builder::new(0);
    for (delta, (key, value, headers)) in (0..).zip(rows) {
        builder.push(delta, time, *key, *value, headers).unwrap();
    }
    builder.finish(compression, 0, -1, Origin::NONE).unwrap()
}

/// XRANGE's answer where these entries are: each its id, then names and values of fields in turn.
pub(super) fn reply<W: AsRef<[u8]>>(entries: &[Vec<W>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", entries.len()).into_bytes();
    for entry in entries {
        let (id, fields) = entry.split_first().expect("an id");
        out.extend(format!("*2\r\n${}\r\n", id.as_ref().len()).into_bytes());
        out.extend_from_slice(id.as_ref());
        out.extend_from_slice(b"\r\n");
        let fields = vec![fields.iter().map(AsRef::as_ref).collect::<Vec<_>>()];
        let start = out.len();
        out.resize(start + encoded_size(&fields), 0);
        encode_commands(&fields, &mut out[start..]);
    }
    out
}

/// As [`reply`], of words separated by spaces.
pub(super) fn written(entries: &[&str]) -> Vec<u8> {
    reply(&entries.iter().map(|entry| entry.split(' ').collect()).collect::<Vec<_>>())
}

/// The words of each command, which all are there.
pub(super) fn commands(mut data: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    while let Some((kind, number, end)) = announcement(data) {
        data = &data[end..];
        if kind == b'*' {
            found.push(Vec::new());
        } else {
            found.last_mut().expect("an array").push(data[..number].to_vec());
            data = &data[number + 2..];
        }
    }
    assert!(data.is_empty());
    found
}
