//! Values as text: as they are, or in a form that keeps every byte.

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// In place of what a plain value may not hold: the replacement character.
const REPLACED: &[u8] = "\u{fffd}".as_bytes();

/// How the values of an answer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are. Line ends, NUL and what is no UTF-8 are replaced by U+FFFD, so that no value can forge a line.
    Plain,
    /// `%` and two digits for every byte but visible ASCII without `%` and `,`.
    Percent,
    /// Base64 with padding (RFC 4648).
    Base64,
}

impl Encoding {
    /// The most bytes that one byte becomes.
    #[must_use]
    pub const fn growth(self) -> usize {
        match self {
            Self::Plain | Self::Percent => 3,
            Self::Base64 => 2,
        }
    }

    /// Append `value`.
    #[inline]
    pub fn write(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => plain(value, out),
            Self::Percent => percent(value, out),
            Self::Base64 => base64(value, out),
        }
    }
}

/// Numbers in decimal digits, one after another: most are the one before and one more.
#[derive(Debug, Default)]
pub(super) struct Counter {
    digits: Vec<u8>,
    last: Option<i64>,
}

impl Counter {
    /// Append a number, which is not negative.
    #[inline]
    pub(super) fn write(&mut self, number: i64, out: &mut Vec<u8>) {
        match (self.last.and_then(|last| last.checked_add(1)), self.digits.last_mut()) {
            (Some(next), Some(digit)) if next == number && *digit < b'9' => *digit += 1,
            _ => {
                self.digits.clear();
                write_number(number, &mut self.digits);
            }
        }
        self.last = Some(number);
        out.extend_from_slice(&self.digits);
    }
}

/// Append a number, which is not negative, in decimal digits.
#[inline]
pub fn write_number(number: i64, out: &mut Vec<u8>) {
    let (mut digits, mut at, mut rest) = ([0_u8; 20], 20, number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Whether text may stand in a line as it is.
#[inline]
pub(super) fn is_plain(bytes: &[u8]) -> bool {
    memchr::memchr3(b'\n', b'\r', 0, bytes).is_none() && std::str::from_utf8(bytes).is_ok()
}

/// Whether these are ASCII characters that may stand in a line: one pass, which the compiler makes many bytes wide.
#[inline]
fn is_simple(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |bad, byte| bad | !(b' '..=b'~').contains(byte))
}

#[inline]
fn plain(value: &[u8], out: &mut Vec<u8>) {
    if is_simple(value) || is_plain(value) {
        out.extend_from_slice(value);
        return;
    }
    for chunk in value.utf8_chunks() {
        for part in chunk.valid().split_inclusive(['\n', '\r', '\0']) {
            if let Some(text) = part.strip_suffix(['\n', '\r', '\0']) {
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(REPLACED);
            } else {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(REPLACED);
        }
    }
}

/// Whether a byte stands for itself in the percent encoding.
#[inline]
const fn is_unreserved(byte: u8) -> bool {
    matches!(byte, b'!'..=b'$' | b'&'..=b'+' | b'-'..=b'~')
}

fn percent(value: &[u8], out: &mut Vec<u8>) {
    if value.iter().fold(true, |all, &byte| all & is_unreserved(byte)) {
        out.extend_from_slice(value);
        return;
    }
    let mut rest = value;
    while !rest.is_empty() {
        let run = rest.iter().position(|&byte| !is_unreserved(byte)).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        rest = &rest[run..];
        if let Some((&byte, behind)) = rest.split_first() {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            rest = behind;
        }
    }
}

fn base64(value: &[u8], out: &mut Vec<u8>) {
    for three in value.chunks(3) {
        let mut group = [0; 3];
        group[..three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        let letters = [18, 12, 6, 0].map(|shift| BASE64[(bits >> shift & 63) as usize]);
        let known = three.len() + 1;
        out.extend_from_slice(&letters[..known]);
        out.extend_from_slice(&b"=="[..4 - known]);
    }
}
