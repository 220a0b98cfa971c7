//! The columns that records are made of, found and checked.

use std::collections::HashMap;

use super::lent::{Array, Cells, Offsets, Strings};
use crate::{Code, Error, Result};

/// Records as columns somebody lends: what they are made of, with every cell inside its buffer.
#[derive(Debug)]
pub struct ArrowRecords<'a> {
    pub(super) length: usize,
    pub(super) value: Strings<'a>,
    pub(super) key: Option<Strings<'a>>,
    pub(super) partition: Option<(Array<'a>, &'a [[u8; 4]])>,
    pub(super) headers: Option<Headers<'a>>,
    /// The distinct topics, in order of first use.
    pub(super) topics: Vec<&'a str>,
    /// The index of each row's topic; None if there is only one topic.
    pub(super) topic_of: Option<Vec<u32>>,
}

#[derive(Debug)]
pub(super) struct Headers<'a> {
    lists: Array<'a>,
    offsets: Offsets<'a>,
    pairs: Array<'a>,
    key: Strings<'a>,
    value: Strings<'a>,
}

impl<'a> ArrowRecords<'a> {
    /// The rows of a struct array. By name: value (needed), key, topic (needed unless `topic` is given, which then counts
    /// for all), partition, headers; others are not looked at. `BAD_COLUMNS`.
    pub fn new(array: &Array<'a>, topic: Option<&'a str>) -> Result<Self> {
        let Cells::Struct(columns) = &array.cells else {
            return bad(format!("a record batch is wanted, and not an array of type {}", array.kind()));
        };
        let find = |name| columns.iter().find(|(known, _)| *known == name).map(|(_, column)| column);
        let strings = |name| find(name).map(|column| strings(name, column)).transpose();
        let Some(value) = strings("value")? else {
            return bad("there is no column value, of string or binary");
        };
        let (topics, topic_of) = match (topic, find("topic")) {
            (Some(topic), _) => (vec![topic], None),
            (None, Some(column)) => sort_out(column)?,
            (None, None) => return bad("there is neither a topic nor a column topic, of string"),
        };
        Ok(Self {
            length: array.length,
            value,
            key: strings("key")?,
            partition: find("partition").map(numbers).transpose()?,
            headers: find("headers").map(Headers::new).transpose()?,
            topics,
            topic_of,
        })
    }

    /// The distinct topics, in order of first use.
    #[must_use]
    pub fn topics(&self) -> &[&'a str] {
        &self.topics
    }
}

impl<'a> Headers<'a> {
    fn new(lists: &Array<'a>) -> Result<Self> {
        let wrong = || {
            bad("the column headers is not a list of structs of key (string) and value (string or binary)")
        };
        let Cells::Lists(offsets, pairs) = &lists.cells else { return wrong() };
        let Cells::Struct(fields) = &pairs.cells else { return wrong() };
        let find = |name| fields.iter().find(|(known, _)| *known == name).map(|(_, field)| field);
        let (Some(key), Some(value)) = (find("key"), find("value")) else { return wrong() };
        let (Cells::Text(..), Some(value)) = (&key.cells, value.strings("headers.value")?) else {
            return wrong();
        };
        let Some(key) = key.strings("headers.key")? else { return wrong() };
        offsets.check("headers", lists.length, pairs.length)?;
        Ok(Self { lists: lists.clone(), offsets: *offsets, pairs: (**pairs).clone(), key, value })
    }

    /// One row's headers, in place of what was there.
    pub(super) fn collect(&self, row: usize, into: &mut Vec<(&'a [u8], Option<&'a [u8]>)>) -> Result<()> {
        into.clear();
        if self.lists.is_null(row) {
            return Ok(());
        }
        for at in self.offsets.range(row) {
            let key = if self.pairs.is_null(at) { None } else { self.key.get(at) };
            let Some(key) = key else { return bad("a header is null, or has no key") };
            into.push((key, self.value.get(at)));
        }
        Ok(())
    }
}

fn strings<'a>(name: &str, column: &Array<'a>) -> Result<Strings<'a>> {
    match column.strings(name)? {
        Some(strings) => Ok(strings),
        None => bad(format!("the column {name} is {}, and has to be string or binary", column.kind())),
    }
}

fn numbers<'a>(column: &Array<'a>) -> Result<(Array<'a>, &'a [[u8; 4]])> {
    match column.cells {
        Cells::Ints(numbers) => Ok((column.clone(), numbers)),
        _ => bad(format!("the column partition is {}, and has to be int32", column.kind())),
    }
}

/// The distinct topics of this column, and which of them each row has.
fn sort_out<'a>(column: &Array<'a>) -> Result<(Vec<&'a str>, Option<Vec<u32>>)> {
    let (Cells::Text(..), Some(cells)) = (&column.cells, column.strings("topic")?) else {
        return bad(format!("the column topic is {}, and has to be string", column.kind()));
    };
    let mut known = HashMap::new();
    let mut topics = Vec::new();
    let mut topic_of: Vec<u32> = Vec::with_capacity(column.length);
    let mut last = None;
    for row in 0..column.length {
        let Some(topic) = cells.get(row) else { return bad(format!("row {row}: the column topic is null")) };
        if last != Some(topic) {
            last = Some(topic);
            known.entry(topic).or_insert(topics.len() as u32);
            if known.len() > topics.len() {
                let Ok(text) = std::str::from_utf8(topic) else {
                    return bad(format!("row {row}: the topic is not UTF-8"));
                };
                topics.push(text);
            }
            topic_of.push(known[topic]);
        } else if let Some(same) = topic_of.last() {
            topic_of.push(*same);
        }
    }
    Ok((topics, Some(topic_of)))
}

pub(super) fn bad<T>(what: impl Into<std::borrow::Cow<'static, str>>) -> Result<T> {
    Error::fail(Code::BadColumns, what)
}
