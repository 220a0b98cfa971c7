//! The entries of a reply to XRANGE, read in place.

use crate::ids;
use crate::resp::announcement;
use crate::{Code, Error, Result};

/// An entry's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    ms: u64,
    sequence: u64,
}

impl Id {
    /// The offset that has this id, or None: a sequence or a time that `bits` leave no room for. `bits` are legal.
    #[inline]
    pub(super) fn offset(self, bits: u32) -> Option<i64> {
        let fits = self.ms <= (i64::MAX >> bits) as u64 && self.sequence < 1 << bits;
        fits.then_some(((self.ms << bits) | self.sequence) as i64)
    }

    /// The first offset behind an id that is none.
    pub(super) fn offset_after(self, bits: u32) -> i64 {
        if self.ms < (i64::MAX >> bits) as u64 { ((self.ms + 1) << bits) as i64 } else { i64::MAX }
    }

    /// The base offset of a whole batch that has this id, or None. With 0 `bits` the id of an offset is `<offset>-1`.
    pub(super) fn base_offset(self, bits: u32) -> Option<i64> {
        if bits > 0 {
            return self.offset(bits);
        }
        i64::try_from(self.ms).ok().filter(|_| self.sequence == 1)
    }

    /// The first base offset behind an id that is none.
    pub(super) fn base_offset_after(self, bits: u32) -> i64 {
        if bits > 0 {
            return self.offset_after(bits);
        }
        let after = if self.sequence == 0 { self.ms } else { self.ms.saturating_add(1) };
        i64::try_from(after).unwrap_or(i64::MAX)
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let number = |digits: &[u8]| {
            let legal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            str::from_utf8(digits).ok().filter(|_| legal).and_then(|digits| digits.parse().ok())
        };
        let dash = text.iter().position(|byte| *byte == b'-').unwrap_or(text.len());
        match (number(&text[..dash]), text.get(dash + 1..).and_then(number)) {
            (Some(ms), Some(sequence)) => Ok(Self { ms, sequence }),
            _ => bad("an entry's id is not made of two numbers"),
        }
    }
}

/// Name and value of an entry's fields.
pub(super) type Fields<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Reads entries one after another. `BAD_RESP` for anything that is not an array of them with rising ids.
pub(super) struct Range<'a> {
    data: &'a [u8],
    at: usize,
    left: usize,
    last: Option<Id>,
}

impl<'a> Range<'a> {
    /// `bits` of sequence are only looked at: `OUT_OF_RANGE` for more than 62.
    pub(super) fn new(reply: &'a [u8], bits: u32) -> Result<Self> {
        ids::mask(bits)?;
        let mut range = Self { data: reply, at: 0, left: 0, last: None };
        range.left = range.number(b'*')?;
        Ok(range)
    }

    /// Bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next entry's id, and its fields in place of what was there; None behind the last.
    #[inline]
    pub(super) fn next(&mut self, fields: &mut Fields<'a>) -> Result<Option<Id>> {
        if self.left == 0 {
            return if self.at == self.data.len() { Ok(None) } else { bad("bytes behind the last entry") };
        }
        self.left -= 1;
        if self.number(b'*')? != 2 {
            return bad("an entry is not made of id and fields");
        }
        let id = Id::parse(self.bulk()?)?;
        if self.last.is_some_and(|last| last >= id) {
            return bad("the ids of entries do not rise");
        }
        self.last = Some(id);
        let words = self.number(b'*')?;
        if words % 2 != 0 {
            return bad("a field without a value");
        }
        fields.clear();
        for _ in 0..words / 2 {
            fields.push((self.bulk()?, self.bulk()?));
        }
        Ok(Some(id))
    }

    #[inline]
    fn number(&mut self, kind: u8) -> Result<usize> {
        match announcement(&self.data[self.at..]) {
            Some((found, number, end)) if found == kind => {
                self.at += end;
                Ok(number)
            }
            _ => bad("the reply is no array of entries"),
        }
    }

    #[inline]
    fn bulk(&mut self) -> Result<&'a [u8]> {
        let size = self.number(b'$')?;
        let end = self.at + size;
        match self.data.get(end..end + 2) {
            Some(b"\r\n") => {
                let bytes = &self.data[self.at..end];
                self.at = end + 2;
                Ok(bytes)
            }
            _ => bad("a bulk string does not end where it should"),
        }
    }
}

#[cold]
fn bad<T>(what: &'static str) -> Result<T> {
    Error::fail(Code::BadResp, what)
}
