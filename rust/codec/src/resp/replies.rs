//! Replies out of a byte stream, whatever way it is cut.

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

/// Parses a stream of replies; keeps what is unfinished.
#[derive(Debug)]
pub struct Replies<V> {
    limit: usize,
    /// The bytes of an unfinished element, and how many of them hold no line end.
    rest: Vec<u8>,
    searched: usize,
    /// Bytes of the current reply whose elements are done.
    used: usize,
    open: Vec<Level<V>>,
    dead: Option<Error>,
}

#[derive(Debug)]
struct Level<V> {
    /// Elements still to come; never 0.
    missing: usize,
    items: Vec<V>,
    /// It only describes the reply that follows, and is dropped.
    attribute: bool,
}

enum Element<'d> {
    Line(u8, &'d [u8]),
    Bulk(u8, &'d [u8]),
}

impl<V> Replies<V> {
    /// Replies of at most `limit` bytes each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, rest: Vec::new(), searched: 0, used: 0, open: Vec::new(), dead: None }
    }

    /// Bytes of the unfinished reply so far.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.used + self.rest.len()
    }

    /// Append the replies that `data` completes to `done`.
    ///
    /// `BAD_RESP`, `OVERSIZE` (a reply above the limit) are final: every later call gives the same error.
    pub fn feed<S: Sink<Value = V>>(
        &mut self,
        data: &[u8],
        sink: &mut S,
        done: &mut Vec<V>,
    ) -> Result<(), Stop<S::Failure>> {
        if let Some(error) = &self.dead {
            return Err(error.clone().into());
        }
        let mut rest = std::mem::take(&mut self.rest);
        let result = if rest.is_empty() {
            self.parse(data, sink, done).map(|used| rest.extend_from_slice(&data[used..]))
        } else {
            rest.extend_from_slice(data);
            self.parse(&rest, sink, done).map(|used| drop(rest.drain(..used)))
        };
        if rest.is_empty() {
            // A large reply must not leave its memory behind.
            rest = Vec::new();
        }
        self.rest = rest;
        if let Err(Stop::Rule(error)) = &result {
            self.dead = Some(error.clone());
        }
        result
    }

    /// How many bytes of `data` are used up.
    fn parse<S: Sink<Value = V>>(
        &mut self,
        data: &[u8],
        sink: &mut S,
        done: &mut Vec<V>,
    ) -> Result<usize, Stop<S::Failure>> {
        let mut at = 0;
        loop {
            let rest = &data[at..];
            let Some((element, size)) = self.element(rest)? else {
                self.bounded(rest.len())?;
                return Ok(at);
            };
            at += size;
            self.used += size;
            if let Some(value) = self.value(&element, sink)? {
                self.settle(value, sink, done)?;
            }
        }
    }

    /// `OVERSIZE` if the current reply would be too large with `size` bytes more.
    fn bounded(&self, size: usize) -> Result<()> {
        if size > self.limit.saturating_sub(self.used) {
            return Err(oversize(self.limit));
        }
        Ok(())
    }

    /// The element at the front of `data` and its size, or None if it is not all there.
    fn element<'d>(&mut self, data: &'d [u8]) -> Result<Option<(Element<'d>, usize)>> {
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
        let body = end + 2;
        self.bounded(body.saturating_add(size).saturating_add(2))?;
        let Some(tail) = data.get(body + size..body + size + 2) else {
            self.searched = end;
            return Ok(None);
        };
        if tail != b"\r\n" {
            return Error::fail(Code::BadResp, "a bulk string does not end where it should");
        }
        Ok(Some((Element::Bulk(kind, &data[body..body + size]), body + size + 2)))
    }

    /// The value of an element; None if it opened an array.
    fn value<S: Sink<Value = V>>(
        &mut self,
        element: &Element<'_>,
        sink: &mut S,
    ) -> Result<Option<V>, Stop<S::Failure>> {
        let value = match element {
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

    /// Put `value` where it belongs, and close every array that it completes.
    fn settle<S: Sink<Value = V>>(
        &mut self,
        mut value: V,
        sink: &mut S,
        done: &mut Vec<V>,
    ) -> Result<(), Stop<S::Failure>> {
        while let Some(mut level) = self.open.pop() {
            level.items.push(value);
            level.missing -= 1;
            if level.missing > 0 {
                self.open.push(level);
                return Ok(());
            }
            if level.attribute {
                return Ok(());
            }
            value = sink.list(level.items).map_err(Stop::Foreign)?;
        }
        self.used = 0;
        done.push(value);
        Ok(())
    }
}

fn bad(message: &'static str) -> Error {
    Error::new(Code::BadResp, message)
}

fn oversize(limit: usize) -> Error {
    Error::new(Code::Oversize, format!("a reply is larger than {limit} bytes"))
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
