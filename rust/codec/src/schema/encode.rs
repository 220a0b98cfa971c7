//! From whatever a [`Source`] holds into bytes.

use super::encoding::{Encoding, Plan, Step};
use super::table::{LONGEST_TEXT, TAGGED_SLOT};
use super::write::{bounded, write_integer, write_length, write_null, write_text_length};
use crate::{Code, Error, Result, Stop, varint};

/// A source's answer for a kind: None if the value is of another kind.
type Given<T, F> = Result<Option<T>, F>;

/// Gives the values of a message one by one.
pub trait Source {
    /// A value of any kind.
    type Value;
    /// A struct.
    type Struct;
    /// Bytes that can be handed on as they are.
    type Lent: AsRef<[u8]>;
    /// Why the source itself may fail.
    type Failure;

    /// Whether the value is null.
    fn is_null(&self, value: &Self::Value) -> bool;
    /// A bool.
    fn boolean(&self, value: &Self::Value) -> Given<bool, Self::Failure>;
    /// An integer that fits 64 bits.
    fn integer(&self, value: &Self::Value) -> Given<i64, Self::Failure>;
    /// A float64.
    fn float(&self, value: &Self::Value) -> Given<f64, Self::Failure>;
    /// A string.
    fn text<'v>(&self, value: &'v Self::Value) -> Given<&'v str, Self::Failure>;
    /// Bytes, or the 16 of a uuid.
    fn bytes(&self, value: &Self::Value) -> Given<Self::Lent, Self::Failure>;
    /// Records: buffers to be written one after another.
    fn records(&self, value: &Self::Value) -> Given<Vec<Self::Lent>, Self::Failure>;
    /// Tagged fields that the shape does not know, in any order.
    fn tags(&self, value: &Self::Value) -> Given<Vec<(u32, Self::Lent)>, Self::Failure>;
    /// The elements of an array.
    fn items(&self, value: &Self::Value) -> Given<Vec<Self::Value>, Self::Failure>;
    /// A struct.
    fn open(&self, value: &Self::Value) -> Given<Self::Struct, Self::Failure>;
    /// One of its fields, if it is there. `place`: which of them, in the order of the table; none for unknown tags.
    fn field(
        &self,
        of: &Self::Struct,
        slot: usize,
        place: Option<usize>,
    ) -> Result<Option<Self::Value>, Self::Failure>;
    /// How many fields it has.
    fn size(&self, of: &Self::Struct) -> usize;
    /// A field of it that is none of `slots`.
    fn stranger(&self, of: &Self::Struct, slots: &[usize]) -> Result<Option<String>, Self::Failure>;
}

/// Encoded bytes, and the records that belong in between.
#[derive(Debug)]
pub struct Parts<L> {
    bytes: Vec<u8>,
    lent: Vec<(usize, L)>,
    lent_size: usize,
    lend_from: usize,
}

impl<L: AsRef<[u8]>> Parts<L> {
    /// Nothing yet. Records of `lend_from` bytes and more will be lent, smaller ones copied.
    #[must_use]
    pub fn new(lend_from: usize) -> Self {
        Self { bytes: Vec::with_capacity(256), lent: Vec::new(), lent_size: 0, lend_from }
    }

    /// Leave room for a length before anything else is written; [`Parts::seal`] fills it in.
    pub fn leave_length(&mut self) {
        self.bytes.extend([0; 4]);
    }

    /// Write the size of all that follows into the four bytes left for it. `OUT_OF_RANGE` above 2 GiB.
    pub fn seal(&mut self) -> Result<()> {
        let size = self.bytes.len() - 4 + self.lent_size;
        let Ok(length) = i32::try_from(size) else {
            return Error::fail(Code::OutOfRange, format!("a frame of {size} bytes"));
        };
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// The bytes written, and what belongs in between: (position in the bytes, lent).
    #[must_use]
    pub fn into_inner(self) -> (Vec<u8>, Vec<(usize, L)>) {
        (self.bytes, self.lent)
    }

    fn lend(&mut self, lent: L) {
        let size = lent.as_ref().len();
        if size < self.lend_from {
            self.bytes.extend_from_slice(lent.as_ref());
        } else {
            self.lent_size += size;
            self.lent.push((self.bytes.len(), lent));
        }
    }
}

type Walked<T, S> = Result<T, Stop<<S as Source>::Failure>>;

pub(super) struct Encode<'w, S> {
    pub(super) source: &'w S,
}

impl<S: Source> Encode<'_, S> {
    pub(super) fn structure(&self, out: &mut Parts<S::Lent>, plan: &Plan, value: &S::Value) -> Walked<(), S> {
        let whole = given(self.source.open(value), "a struct")?;
        let mut found = 0;
        for step in &plan.steps {
            match self.source.field(&whole, step.slot, Some(step.place)).map_err(Stop::Foreign)? {
                Some(value) => {
                    found += 1;
                    self.step(out, step, &value).map_err(|stop| stop.within(&format!(".{}", step.name)))?;
                }
                None => out.bytes.extend_from_slice(&step.written),
            }
        }
        if plan.flexible {
            found += self.tagged(out, plan, &whole)?;
        }
        if found == self.source.size(&whole) {
            return Ok(());
        }
        // Fields of other versions are left out without a word; those of no version are a mistake.
        let slots: Vec<_> = plan.all().map(|step| step.slot).chain([TAGGED_SLOT]).collect();
        match self.source.stranger(&whole, &slots).map_err(Stop::Foreign)? {
            Some(name) => Err(Error::new(Code::BadValue, format!(".{name}: there is no such field")).into()),
            None => Ok(()),
        }
    }

    fn step(&self, out: &mut Parts<S::Lent>, step: &Step, value: &S::Value) -> Walked<(), S> {
        if !self.source.is_null(value) {
            if step.nullable && matches!(step.encoding, Encoding::Struct(_)) {
                out.bytes.push(1);
            }
            return self.value(out, &step.encoding, value);
        }
        if step.nullable {
            write_null(&mut out.bytes, &step.encoding);
            return Ok(());
        }
        Err(Error::new(Code::BadValue, "null is not legal here").into())
    }

    fn value(&self, out: &mut Parts<S::Lent>, encoding: &Encoding, value: &S::Value) -> Walked<(), S> {
        let source = self.source;
        match encoding {
            Encoding::Integer(kind, low, high) => {
                let number = given(source.integer(value), "an integer of at most 64 bits")?;
                if !(*low..=*high).contains(&number) {
                    return Err(
                        Error::new(Code::BadValue, format!("{number} is not in {low}..{high}")).into()
                    );
                }
                write_integer(&mut out.bytes, *kind, number);
            }
            Encoding::Bool => out.bytes.push(u8::from(given(source.boolean(value), "a bool")?)),
            Encoding::Float64 => out.bytes.extend(given(source.float(value), "a float")?.to_be_bytes()),
            Encoding::Uuid => {
                let lent = given(source.bytes(value), "16 bytes")?;
                let uuid: [u8; 16] = given(Ok(lent.as_ref().try_into().ok()), "16 bytes")?;
                out.bytes.extend(uuid);
            }
            Encoding::Text { compact } => {
                let text = given(source.text(value), "a string")?;
                write_text_length(&mut out.bytes, *compact, bounded(text.len(), LONGEST_TEXT)?);
                out.bytes.extend_from_slice(text.as_bytes());
            }
            Encoding::Bytes { compact } => {
                let lent = given(source.bytes(value), "bytes")?;
                write_length(&mut out.bytes, *compact, bounded(lent.as_ref().len(), i32::MAX as usize - 1)?);
                out.bytes.extend_from_slice(lent.as_ref());
            }
            Encoding::Records { compact } => {
                let buffers = given(source.records(value), "a buffer or a list of buffers")?;
                let size = buffers.iter().map(|lent| lent.as_ref().len()).sum();
                write_length(&mut out.bytes, *compact, bounded(size, i32::MAX as usize - 1)?);
                for lent in buffers {
                    out.lend(lent);
                }
            }
            Encoding::Tags => {
                let tags = given(source.tags(value), "a dict of tags")?;
                write_tags(
                    out,
                    ordered(tags.into_iter().map(|(tag, lent)| (tag, Body::Kept(lent))).collect())?,
                )?;
            }
            Encoding::Array { of, compact, .. } => {
                let items = given(source.items(value), "a list")?;
                write_length(&mut out.bytes, *compact, bounded(items.len(), i32::MAX as usize - 1)?);
                for (at, item) in items.iter().enumerate() {
                    let written = if source.is_null(item) {
                        Err(Error::new(Code::BadValue, "null is not legal here").into())
                    } else {
                        self.value(out, of, item)
                    };
                    written.map_err(|stop: Stop<_>| stop.within(&format!("[{at}]")))?;
                }
            }
            Encoding::Struct(plan) => self.structure(out, plan, value)?,
        }
        Ok(())
    }

    /// The section of tagged fields; how many of the struct's fields it took.
    fn tagged(&self, out: &mut Parts<S::Lent>, plan: &Plan, whole: &S::Struct) -> Walked<usize, S> {
        let mut found = 0;
        let mut section = Vec::new();
        for step in &plan.tagged {
            let Some(value) = self.source.field(whole, step.slot, Some(step.place)).map_err(Stop::Foreign)?
            else {
                continue;
            };
            found += 1;
            let mut body = Parts::new(usize::MAX);
            self.step(&mut body, step, &value).map_err(|stop| stop.within(&format!(".{}", step.name)))?;
            if *body.bytes != *step.written {
                section.push((step.tag, Body::Written(body.bytes)));
            }
        }
        if let Some(value) = self.source.field(whole, TAGGED_SLOT, None).map_err(Stop::Foreign)? {
            found += 1;
            let place = |error: Error| error.within("._tagged");
            let tags =
                given(self.source.tags(&value), "a dict of tags").map_err(|stop| stop.within("._tagged"))?;
            for (tag, lent) in tags {
                if plan.tagged.iter().any(|step| step.tag == tag) {
                    let message = format!("tag {tag} has a field of its own");
                    return Err(place(Error::new(Code::BadValue, message)).into());
                }
                section.push((tag, Body::Kept(lent)));
            }
        }
        if section.is_empty() {
            out.bytes.push(0);
        } else {
            write_tags(out, ordered(section)?)?;
        }
        Ok(found)
    }
}

enum Body<L> {
    Written(Vec<u8>),
    Kept(L),
}

impl<L: AsRef<[u8]>> AsRef<[u8]> for Body<L> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Written(bytes) => bytes,
            Self::Kept(lent) => lent.as_ref(),
        }
    }
}

fn ordered<L>(mut tags: Vec<(u32, Body<L>)>) -> Result<Vec<(u32, Body<L>)>> {
    tags.sort_by_key(|(tag, _)| *tag);
    match tags.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Error::fail(Code::BadValue, format!("tag {} is given twice", pair[0].0)),
        None => Ok(tags),
    }
}

fn write_tags<L: AsRef<[u8]>>(out: &mut Parts<L>, tags: Vec<(u32, Body<L>)>) -> Result<()> {
    varint::write_u32(&mut out.bytes, bounded(tags.len(), i32::MAX as usize)? as u32);
    for (tag, body) in tags {
        varint::write_u32(&mut out.bytes, tag);
        varint::write_u32(&mut out.bytes, bounded(body.as_ref().len(), i32::MAX as usize)? as u32);
        out.bytes.extend_from_slice(body.as_ref());
    }
    Ok(())
}

fn given<T, F>(answer: Given<T, F>, wanted: &'static str) -> Result<T, Stop<F>> {
    match answer {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(Error::new(Code::BadValue, format!("{wanted} is needed")).into()),
        Err(failure) => Err(Stop::Foreign(failure)),
    }
}
