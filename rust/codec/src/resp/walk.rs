//! From element to element of a reply.

use std::borrow::Cow;

use memchr::memmem;

use crate::{Code, Error, Result, Stop};

/// Arrays inside arrays, at most.
pub const MOST_LEVELS: usize = 8;

/// Most digits of a big number; Python's own `int` refuses a few thousand.
const MOST_DIGITS: usize = 1024;

/// The fewest bytes a reply can take.
const SMALLEST: usize = 3;

/// Makes values of what replies hold.
pub trait Sink {
    /// A finished value.
    type Value;
    /// Why the sink itself may fail.
    type Failure;

    /// Null.
    fn null(&mut self) -> Self::Value;
    /// A bool.
    fn boolean(&mut self, value: bool) -> Self::Value;
    /// An integer.
    fn integer(&mut self, value: i64) -> Self::Value;
    /// An integer too large for 64 bits: an optional sign and digits.
    fn big(&mut self, digits: &str) -> Result<Self::Value, Self::Failure>;
    /// A double.
    fn float(&mut self, value: f64) -> Self::Value;
    /// A simple string.
    fn text(&mut self, value: &str) -> Self::Value;
    /// A bulk string.
    fn bytes(&mut self, value: &[u8]) -> Self::Value;
    /// An error.
    fn error(&mut self, message: &str) -> Result<Self::Value, Self::Failure>;
    /// An array, set or push, or a map's keys and values in turn.
    fn list(&mut self, items: Vec<Self::Value>) -> Result<Self::Value, Self::Failure>;
}

/// The size of an element, and the reply's value if it was its last.
pub(super) type Used<V> = (usize, Option<V>);

/// Where a walk through one reply is, and what it has found so far.
#[derive(Debug)]
pub(super) struct Walk<V> {
    limit: usize,
    /// How many bytes of the unfinished element hold no line end.
    searched: usize,
    /// Bytes of the current reply whose elements are done.
    pub(super) used: usize,
    open: Vec<Level<V>>,
}

#[derive(Debug)]
struct Level<V> {
    /// Elements still to come; never 0.
    missing: usize,
    items: Vec<V>,
    /// Whether this is an attribute, which only describes the reply that follows, and is dropped.
    attribute: bool,
}

enum Element<'d> {
    Line(u8, &'d [u8]),
    Bulk(u8, &'d [u8]),
    Array(usize),
}

impl<V> Walk<V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, searched: 0, used: 0, open: Vec::new() }
    }

    /// Use up the element at the front of `data`. None if it is not all there. `BAD_RESP`, `OVERSIZE`; there is no going on after an error.
    pub(super) fn step<S: Sink<Value = V>>(
        &mut self,
        data: &[u8],
        sink: &mut S,
    ) -> Result<Option<Used<V>>, Stop<S::Failure>> {
        let Some((element, size)) = self.element(data)? else {
            self.bounded(data.len())?;
            return Ok(None);
        };
        self.used += size;
        let value = match self.value(&element, sink)? {
            Some(value) => self.settle(value, sink)?,
            None => None,
        };
        Ok(Some((size, value)))
    }

    /// `OVERSIZE` if the current reply would be too large with `size` bytes more.
    fn bounded(&self, size: usize) -> Result<()> {
        if size > self.limit.saturating_sub(self.used) {
            return Error::fail(Code::Oversize, format!("a reply is larger than {} bytes", self.limit));
        }
        Ok(())
    }

    /// The element at the front of `data` and its size, or None if it is not all there.
    fn element<'d>(&mut self, data: &'d [u8]) -> Result<Option<(Element<'d>, usize)>> {
        if let Some((kind, number, end)) = announcement(data) {
            self.bounded(end)?;
            self.searched = 0;
            if kind == b'*' {
                return Ok(Some((Element::Array(number), end)));
            }
            return self.bulk(kind, data, end, number);
        }
        let from = self.searched.min(data.len());
        let Some(end) = memmem::find(&data[from..], b"\r\n").map(|at| from + at) else {
            // A carriage return at the very end may be the first half of a line end.
            self.searched = data.len().saturating_sub(1);
            return Ok(None);
        };
        // Before anything is made of the line: where the stream was cut must not decide on the error.
        self.bounded(end + 2)?;
        let Some((&kind, text)) = data[..end].split_first() else {
            return Error::fail(Code::BadResp, "an empty line");
        };
        self.searched = 0;
        if !matches!(kind, b'$' | b'=' | b'!') || text == b"-1" {
            return Ok(Some((Element::Line(kind, text), end + 2)));
        }
        let size = length(text)?;
        let element = self.bulk(kind, data, end + 2, size)?;
        if element.is_none() {
            self.searched = end;
        }
        Ok(element)
    }

    /// The bulk string whose `size` bytes begin at `body`, or None if they are not all there.
    #[inline]
    fn bulk<'d>(
        &self,
        kind: u8,
        data: &'d [u8],
        body: usize,
        size: usize,
    ) -> Result<Option<(Element<'d>, usize)>> {
        self.bounded(body.saturating_add(size).saturating_add(2))?;
        match data.get(body + size..body + size + 2) {
            Some(b"\r\n") => Ok(Some((Element::Bulk(kind, &data[body..body + size]), body + size + 2))),
            Some(_) => Error::fail(Code::BadResp, "a bulk string does not end where it should"),
            None => Ok(None),
        }
    }

    /// The value of an element; None if it opened an array.
    fn value<S: Sink<Value = V>>(
        &mut self,
        element: &Element<'_>,
        sink: &mut S,
    ) -> Result<Option<V>, Stop<S::Failure>> {
        let value = match element {
            Element::Array(count) => return self.enter(*count, false, sink),
            Element::Bulk(b'$', bytes) => sink.bytes(bytes),
            Element::Bulk(b'=', bytes) => match bytes.split_at_checked(4) {
                Some((format, bytes)) if format.ends_with(b":") => sink.bytes(bytes),
                _ => return Err(bad("a verbatim string without its format").into()),
            },
            Element::Bulk(_, bytes) => sink.error(&lossy(bytes)).map_err(Stop::Foreign)?,
            Element::Line(kind, text) => match kind {
                b'+' => sink.text(&lossy(text)),
                b'-' => sink.error(&lossy(text)).map_err(Stop::Foreign)?,
                b':' => sink.integer(integer(text)?),
                b'(' => match digits(text)?.parse() {
                    Ok(small) => sink.integer(small),
                    Err(_) => sink.big(digits(text)?).map_err(Stop::Foreign)?,
                },
                b',' => sink.float(float(text)?),
                b'#' if *text == b"t" || *text == b"f" => sink.boolean(*text == b"t"),
                b'_' if text.is_empty() => sink.null(),
                b'$' | b'*' if *text == b"-1" => sink.null(),
                b'*' | b'~' | b'>' => return self.enter(length(text)?, false, sink),
                b'%' => return self.enter(length(text)?.saturating_mul(2), false, sink),
                b'|' => return self.enter(length(text)?.saturating_mul(2), true, sink),
                _ => return Err(bad("a line that is no reply").into()),
            },
        };
        Ok(Some(value))
    }

    fn enter<S: Sink<Value = V>>(
        &mut self,
        count: usize,
        attribute: bool,
        sink: &mut S,
    ) -> Result<Option<V>, Stop<S::Failure>> {
        if self.open.len() == MOST_LEVELS {
            return Err(bad("arrays are nested too deeply").into());
        }
        self.bounded(count.saturating_mul(SMALLEST))?;
        if count > 0 {
            self.open.push(Level { missing: count, items: Vec::new(), attribute });
        } else if !attribute {
            return sink.list(Vec::new()).map(Some).map_err(Stop::Foreign);
        }
        Ok(None)
    }

    /// Put `value` where it belongs, and close every array that it completes; the reply's value if it ends there.
    fn settle<S: Sink<Value = V>>(
        &mut self,
        mut value: V,
        sink: &mut S,
    ) -> Result<Option<V>, Stop<S::Failure>> {
        while let Some(level) = self.open.last_mut() {
            level.items.push(value);
            level.missing -= 1;
            if level.missing > 0 {
                return Ok(None);
            }
            let (attribute, items) = (level.attribute, std::mem::take(&mut level.items));
            self.open.pop();
            if attribute {
                return Ok(None);
            }
            value = sink.list(items).map_err(Stop::Foreign)?;
        }
        self.used = 0;
        Ok(Some(value))
    }
}

/// The usual head of a bulk string or an array: its kind, the number in it, and where it ends. None leaves it to the
/// general reader, for errors too.
#[inline]
pub(crate) fn announcement(data: &[u8]) -> Option<(u8, usize, usize)> {
    let (&kind, rest) = data.split_first()?;
    if kind != b'$' && kind != b'*' {
        return None;
    }
    let mut number = 0;
    for (place, byte) in rest.iter().take(10).enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            b'\r' if place > 0 && rest.get(place + 1) == Some(&b'\n') => {
                return Some((kind, number, place + 3));
            }
            _ => return None,
        }
    }
    None
}

fn bad(message: &'static str) -> Error {
    Error::new(Code::BadResp, message)
}

/// Redis puts what it was sent into its messages, so they need not be UTF-8.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The text of an integer of any size.
fn digits(text: &[u8]) -> Result<&str> {
    let number = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let legal = !number.is_empty() && number.len() <= MOST_DIGITS && number.iter().all(u8::is_ascii_digit);
    match str::from_utf8(text) {
        Ok(text) if legal => Ok(text),
        _ => Error::fail(Code::BadResp, "a number with other than digits"),
    }
}

fn integer(text: &[u8]) -> Result<i64> {
    digits(text)?.parse().map_err(|_| bad("an integer beyond 64 bits"))
}

fn length(text: &[u8]) -> Result<usize> {
    let length = integer(text)?;
    usize::try_from(length).map_err(|_| bad("a length below zero"))
}

fn float(text: &[u8]) -> Result<f64> {
    let legal = matches!(text, b"inf" | b"-inf" | b"nan")
        || text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    let number = str::from_utf8(text).ok().filter(|_| legal).and_then(|text| text.parse().ok());
    number.ok_or_else(|| bad("a double that is no number"))
}
