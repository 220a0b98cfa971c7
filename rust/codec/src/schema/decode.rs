//! From bytes into whatever a [`Sink`] makes of them.

use std::ops::Range;

use super::encoding::{Encoding, Plan, Step};
use super::table::{Initial, Kind, LONGEST_TEXT, TAGGED_SLOT};
use crate::reader::Reader;
use crate::{Code, Error, Result, Stop};

/// Takes the values of a message one by one. It is only told of what the input was checked to hold.
pub trait Sink {
    /// A finished value.
    type Value;
    /// An array under construction.
    type List;
    /// A struct under construction.
    type Struct;
    /// Why the sink itself may fail.
    type Failure;

    /// Null.
    fn null(&mut self) -> Self::Value;
    /// A bool.
    fn boolean(&mut self, value: bool) -> Self::Value;
    /// An integer of any width.
    fn integer(&mut self, value: i64) -> Self::Value;
    /// A float64.
    fn float(&mut self, value: f64) -> Self::Value;
    /// A string.
    fn text(&mut self, value: &str) -> Self::Value;
    /// Bytes, or the 16 of a uuid.
    fn bytes(&mut self, value: &[u8]) -> Self::Value;
    /// Records: where they lie in the input, not what they are. `0..0` for a default.
    fn records(&mut self, place: Range<usize>) -> Result<Self::Value, Self::Failure>;
    /// Tagged fields that the shape does not know, by ascending tag.
    fn tags(&mut self, tags: &[(u32, &[u8])]) -> Result<Self::Value, Self::Failure>;
    /// Begin an array of `count` elements.
    fn open_list(&mut self, count: usize) -> Self::List;
    /// The next element.
    fn push(&mut self, list: &mut Self::List, value: Self::Value) -> Result<(), Self::Failure>;
    /// The array is whole.
    fn close_list(&mut self, list: Self::List) -> Self::Value;
    /// Begin a struct.
    fn open(&mut self) -> Self::Struct;
    /// The value of one of its fields; every slot of the struct comes once.
    fn set(&mut self, to: &mut Self::Struct, slot: usize, value: Self::Value) -> Result<(), Self::Failure>;
    /// The struct is whole.
    fn close(&mut self, whole: Self::Struct) -> Self::Value;
}

pub(super) struct Decode<'w, 'd, S> {
    pub(super) reader: Reader<'d>,
    pub(super) sink: &'w mut S,
    /// Array elements and unknown tags still allowed.
    pub(super) left: usize,
}

type Walked<T, S> = Result<T, Stop<<S as Sink>::Failure>>;

impl<'d, S: Sink> Decode<'_, 'd, S> {
    pub(super) fn message(&mut self, plan: &Plan) -> Walked<S::Value, S> {
        let value = self.structure(plan)?;
        self.all_used()?;
        Ok(value)
    }

    fn all_used(&self) -> Result<()> {
        match self.reader.remaining() {
            0 => Ok(()),
            left => Error::fail(Code::TrailingBytes, format!("{left} bytes are left over")),
        }
    }

    fn structure(&mut self, plan: &Plan) -> Walked<S::Value, S> {
        let mut whole = self.sink.open();
        for step in &plan.steps {
            let value = self.step(step).map_err(|stop| stop.within(&format!(".{}", step.name)))?;
            self.sink.set(&mut whole, step.slot, value).map_err(Stop::Foreign)?;
        }
        if plan.flexible {
            self.tagged(plan, &mut whole)?;
        }
        for step in &plan.absent {
            self.set_default(&mut whole, step)?;
        }
        Ok(self.sink.close(whole))
    }

    fn set_default(&mut self, whole: &mut S::Struct, step: &Step) -> Walked<(), S> {
        let value = self.default(&step.encoding, &step.initial)?;
        self.sink.set(whole, step.slot, value).map_err(Stop::Foreign)
    }

    fn step(&mut self, step: &Step) -> Walked<S::Value, S> {
        let value = match &step.encoding {
            Encoding::Struct(plan) if step.nullable => {
                if self.reader.i8()? < 0 {
                    None
                } else {
                    Some(self.structure(plan)?)
                }
            }
            encoding => self.value(encoding)?,
        };
        match value {
            Some(value) => Ok(value),
            None if step.nullable => Ok(self.sink.null()),
            None => Err(Error::new(Code::UnexpectedNull, "null is not legal here").into()),
        }
    }

    /// The value, or None for null.
    fn value(&mut self, encoding: &Encoding) -> Walked<Option<S::Value>, S> {
        let value = match encoding {
            Encoding::Integer(kind, ..) => {
                let number = self.integer(*kind)?;
                self.sink.integer(number)
            }
            Encoding::Bool => {
                let byte = self.reader.u8()?;
                self.sink.boolean(byte != 0)
            }
            Encoding::Float64 => {
                let number = self.reader.f64()?;
                self.sink.float(number)
            }
            Encoding::Uuid => {
                let bytes: [u8; 16] = self.reader.array()?;
                self.sink.bytes(&bytes)
            }
            Encoding::Text { compact } => {
                let plain = |reader: &mut Reader<'d>| reader.i16().map(i32::from);
                let Some(size) = self.length(*compact, plain)? else { return Ok(None) };
                if size > LONGEST_TEXT {
                    return Err(Error::new(Code::Oversize, format!("a string of {size} bytes")).into());
                }
                match std::str::from_utf8(self.reader.take(size)?) {
                    Ok(text) => self.sink.text(text),
                    Err(_) => return Err(Error::new(Code::BadUtf8, "the text is not UTF-8").into()),
                }
            }
            Encoding::Bytes { compact } => {
                let Some(size) = self.length(*compact, Reader::i32)? else { return Ok(None) };
                let bytes = self.reader.take(size)?;
                self.sink.bytes(bytes)
            }
            Encoding::Records { compact } => {
                let Some(size) = self.length(*compact, Reader::i32)? else { return Ok(None) };
                let from = self.reader.position();
                self.reader.take(size)?;
                self.sink.records(from..from + size).map_err(Stop::Foreign)?
            }
            Encoding::Tags => {
                let mut unknown = Vec::new();
                self.section(|_, tag, body| {
                    unknown.push((tag, body));
                    Ok(true)
                })?;
                self.sink.tags(&unknown).map_err(Stop::Foreign)?
            }
            Encoding::Array { of, compact, smallest } => {
                let Some(count) = self.length(*compact, Reader::i32)? else { return Ok(None) };
                self.array(of, count, *smallest)?
            }
            Encoding::Struct(plan) => self.structure(plan)?,
        };
        Ok(Some(value))
    }

    fn array(&mut self, of: &Encoding, count: usize, smallest: usize) -> Walked<S::Value, S> {
        if count > self.reader.remaining() / smallest {
            let left = self.reader.remaining();
            let message =
                format!("{count} elements of at least {smallest} bytes are announced, {left} bytes are left");
            return Err(Error::new(Code::CountExceedsInput, message).into());
        }
        self.spend(count)?;
        let mut list = self.sink.open_list(count);
        for at in 0..count {
            let element = self.value(of).and_then(|value| {
                value.ok_or_else(|| Error::new(Code::UnexpectedNull, "null is not legal here").into())
            });
            let element = element.map_err(|stop| stop.within(&format!("[{at}]")))?;
            self.sink.push(&mut list, element).map_err(Stop::Foreign)?;
        }
        Ok(self.sink.close_list(list))
    }

    fn spend(&mut self, count: usize) -> Result<()> {
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => {
                return Error::fail(Code::TooManyElements, "the message has more elements than the limit");
            }
        }
        Ok(())
    }

    fn integer(&mut self, kind: Kind) -> Result<i64> {
        match kind {
            Kind::Int8 => self.reader.i8().map(i64::from),
            Kind::Int16 => self.reader.i16().map(i64::from),
            Kind::Uint16 => self.reader.u16().map(i64::from),
            Kind::Uint32 => self.reader.u32().map(i64::from),
            Kind::Int64 => self.reader.i64(),
            _ => self.reader.i32().map(i64::from),
        }
    }

    /// A length or count; None for null. `plain` reads the form that is not compact.
    fn length(
        &mut self,
        compact: bool,
        plain: impl FnOnce(&mut Reader<'d>) -> Result<i32>,
    ) -> Result<Option<usize>> {
        if compact {
            return Ok((self.reader.uvarint()? as usize).checked_sub(1));
        }
        match plain(&mut self.reader)? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Error::fail(Code::NegativeLength, format!("a length of {length}")),
            },
        }
    }

    /// The section of tagged fields that ends a flexible struct.
    fn tagged(&mut self, plan: &Plan, whole: &mut S::Struct) -> Walked<(), S> {
        let mut unknown = Vec::new();
        let mut ahead = plan.tagged.iter().peekable();
        self.section(|walk, tag, body| {
            while let Some(step) = ahead.next_if(|step| step.tag < tag) {
                walk.set_default(whole, step)?;
            }
            let Some(step) = ahead.next_if(|step| step.tag == tag) else {
                unknown.push((tag, body));
                return Ok(true);
            };
            let value = walk
                .step(step)
                .and_then(|value| walk.all_used().map(|()| value).map_err(Stop::Rule))
                .map_err(|stop| stop.within(&format!(".{}", step.name)))?;
            walk.sink.set(whole, step.slot, value).map_err(Stop::Foreign)?;
            Ok(false)
        })?;
        for step in ahead {
            self.set_default(whole, step)?;
        }
        if !unknown.is_empty() {
            let tags = self.sink.tags(&unknown).map_err(Stop::Foreign)?;
            self.sink.set(whole, TAGGED_SLOT, tags).map_err(Stop::Foreign)?;
        }
        Ok(())
    }

    /// Walk a section: `each` gets the tag and its bytes, with the reader narrowed to them, and says whether it was
    /// unknown.
    fn section(
        &mut self,
        mut each: impl FnMut(&mut Self, u32, &'d [u8]) -> Walked<bool, S>,
    ) -> Walked<(), S> {
        let count = self.reader.uvarint()? as usize;
        if count == 0 {
            return Ok(());
        }
        if count > self.reader.remaining() / 2 {
            let message =
                format!("{count} tagged fields are announced, {} bytes are left", self.reader.remaining());
            return Err(Error::new(Code::CountExceedsInput, message).into());
        }
        let mut before = None;
        for _ in 0..count {
            let tag = self.reader.uvarint()?;
            if before.replace(tag).is_some_and(|before| before >= tag) {
                return Err(Error::new(Code::DuplicateTag, format!("tag {tag} is out of order")).into());
            }
            let size = self.reader.uvarint()? as usize;
            let inner = self.reader.narrow(size)?;
            let outer = std::mem::replace(&mut self.reader, inner.clone());
            let body = inner.rest();
            let unknown = each(self, tag, body)?;
            self.reader = outer;
            if unknown {
                self.spend(1)?;
            }
        }
        Ok(())
    }

    fn default(&mut self, encoding: &Encoding, initial: &Initial) -> Walked<S::Value, S> {
        let sink = &mut *self.sink;
        Ok(match (initial, encoding) {
            (Initial::Null, _) => sink.null(),
            (Initial::Bool(value), _) => sink.boolean(*value),
            (Initial::Int(value), _) => sink.integer(*value),
            (Initial::Float(value), _) => sink.float(*value),
            (Initial::Text(text), _) => sink.text(text),
            (Initial::Bytes(bytes), _) => sink.bytes(bytes),
            (Initial::Zero, Encoding::Bool) => sink.boolean(false),
            (Initial::Zero, Encoding::Integer(..)) => sink.integer(0),
            (Initial::Zero, Encoding::Float64) => sink.float(0.0),
            (Initial::Zero, Encoding::Uuid) => sink.bytes(&[0; 16]),
            (Initial::Zero, Encoding::Text { .. }) => sink.text(""),
            (Initial::Zero, Encoding::Bytes { .. }) => sink.bytes(&[]),
            (Initial::Zero, Encoding::Records { .. }) => sink.records(0..0).map_err(Stop::Foreign)?,
            (Initial::Zero, Encoding::Tags) => sink.tags(&[]).map_err(Stop::Foreign)?,
            (Initial::Zero, Encoding::Array { .. }) => {
                let list = sink.open_list(0);
                sink.close_list(list)
            }
            (Initial::Zero, Encoding::Struct(plan)) => {
                let mut whole = sink.open();
                for step in plan.all() {
                    self.set_default(&mut whole, step)?;
                }
                self.sink.close(whole)
            }
        })
    }
}
