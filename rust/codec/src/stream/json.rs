//! A JSON object as headers. Source: RFC 8259.

use std::borrow::Cow;

/// Objects and arrays inside one another, at most.
const MOST_LEVELS: usize = 32;

/// A header: name, and value or null.
pub(super) type Member<'a> = (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>);

/// The members of a JSON object in their order, repeated names too: a string as its text in UTF-8, null as null, anything
/// else as the JSON it is written in. None if this is no JSON object, is nested too deeply, or holds half a character.
pub(super) fn members(text: &[u8]) -> Option<Vec<Member<'_>>> {
    let text = str::from_utf8(text).ok()?.as_bytes();
    let mut cursor = Cursor { text, at: 0 };
    let mut found = Vec::new();
    cursor.space();
    cursor.list(b'{', |cursor| {
        let name = cursor.text()?;
        cursor.colon()?;
        let value = match cursor.peek()? {
            b'"' => Some(cursor.text()?),
            b'n' => cursor.word(b"null").map(|()| None)?,
            _ => {
                let from = cursor.at;
                cursor.value(1)?;
                Some(Cow::Borrowed(&text[from..cursor.at]))
            }
        };
        found.push((name, value));
        Some(())
    })?;
    cursor.space();
    (cursor.at == text.len()).then_some(found)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// Every method that expects something gives None if it is not there.
impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn colon(&mut self) -> Option<()> {
        self.space();
        self.word(b":")?;
        self.space();
        Some(())
    }

    /// An object or array, each member of which `member` uses up.
    fn list(&mut self, open: u8, mut member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.word(&[open])?;
        let close = [open + 2]; // in ASCII
        self.space();
        if self.word(&close).is_some() {
            return Some(());
        }
        loop {
            member(self)?;
            self.space();
            if self.word(b",").is_none() {
                return self.word(&close);
            }
            self.space();
        }
    }

    /// A value of any kind, inside of `depth` others.
    fn value(&mut self, depth: usize) -> Option<()> {
        let inside = || (depth < MOST_LEVELS).then_some(depth + 1);
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' => {
                let depth = inside()?;
                self.list(b'{', |cursor| {
                    cursor.string()?;
                    cursor.colon()?;
                    cursor.value(depth)
                })
            }
            b'[' => {
                let depth = inside()?;
                self.list(b'[', |cursor| cursor.value(depth))
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        self.word(b"-");
        if self.word(b"0").is_none() {
            self.digits()?;
        }
        if self.word(b".").is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// The bytes between the quotes of a string, and whether there are escapes in them.
    fn string(&mut self) -> Option<(&'a [u8], bool)> {
        self.word(b"\"")?;
        let (from, mut escaped) = (self.at, false);
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some((&self.text[from..self.at - 1], escaped)),
                b'\\' => {
                    escaped = true;
                    let kind = self.peek()?;
                    self.at += 1;
                    match kind {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => (),
                        b'u' => self.at += unit(&self.text[self.at..]).map(|_| 4)?,
                        _ => return None,
                    }
                }
                ..0x20 => return None,
                _ => (),
            }
        }
    }

    /// The text of a string.
    fn text(&mut self) -> Option<Cow<'a, [u8]>> {
        let (body, escaped) = self.string()?;
        if escaped { unescape(body).map(Cow::Owned) } else { Some(Cow::Borrowed(body)) }
    }
}

/// The four hexadecimal digits at the front.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Text without its escapes, which are whole; None if one is half a character.
fn unescape(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    while let Some(at) = memchr::memchr(b'\\', body) {
        out.extend_from_slice(&body[..at]);
        let kind = body[at + 1];
        body = &body[at + 2..];
        match kind {
            b'u' => {
                let mut units = vec![unit(body)?];
                body = &body[4..];
                if let (0xd800..0xdc00, Some(low)) = (units[0], body.strip_prefix(b"\\u").and_then(unit)) {
                    units.push(low);
                    body = &body[6..];
                }
                out.extend_from_slice(String::from_utf16(&units).ok()?.as_bytes());
            }
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            other => out.push(other),
        }
    }
    out.extend_from_slice(body);
    Some(out)
}
