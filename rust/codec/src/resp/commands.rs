//! Commands, as arrays of bulk strings.

/// Most digits of a number of 64 bits.
pub(crate) const DIGITS: usize = 20;

/// Bytes that a pipeline of a few commands takes: room for them is made at once, not byte by byte.
const FEW: usize = 512;

/// How many bytes [`encode_commands`] writes.
#[must_use]
pub fn encoded_size<A: AsRef<[u8]>>(commands: &[Vec<A>]) -> usize {
    let command = |arguments: &Vec<A>| {
        let words = arguments.iter().map(|argument| bulk_size(argument.as_ref().len()));
        array_size(arguments.len()) + words.sum::<usize>()
    };
    commands.iter().map(command).sum()
}

/// Write a pipeline of commands into `out`, which must be [`encoded_size`] long.
///
/// # Panics
/// If it is not.
pub fn encode_commands<A: AsRef<[u8]>>(commands: &[Vec<A>], out: &mut [u8]) {
    let mut writer = Writer { out, at: 0 };
    for arguments in commands {
        writer.header(b'*', arguments.len());
        for argument in arguments {
            writer.bulk(argument.as_ref());
        }
    }
    assert_eq!(writer.at, writer.out.len(), "the space must be encoded_size() long");
}

/// Words as bulk strings, without the array around them.
#[must_use]
pub fn words<A: AsRef<[u8]>>(words: &[A]) -> Vec<u8> {
    let mut out = vec![0; words.iter().map(|word| bulk_size(word.as_ref().len())).sum()];
    let mut writer = Writer { out: &mut out, at: 0 };
    for word in words {
        writer.bulk(word.as_ref());
    }
    out
}

/// A part of an encoded pipeline.
#[derive(Debug, PartialEq, Eq)]
pub enum EncodedPart<'a, A> {
    /// Packed arguments, and what stands around the large ones.
    Packed(Vec<u8>),
    /// A large argument, as it was given.
    Argument(&'a A),
}

/// The bytes of [`encode_commands`], cut in parts so that arguments of `large` bytes and more are not copied.
#[must_use]
pub fn encode_command_parts<A: AsRef<[u8]>>(commands: &[Vec<A>], large: usize) -> Vec<EncodedPart<'_, A>> {
    let (mut found, mut packed) = (Vec::new(), Vec::with_capacity(FEW));
    for arguments in commands {
        announce(&mut packed, b'*', arguments.len());
        for argument in arguments {
            let bytes = argument.as_ref();
            announce(&mut packed, b'$', bytes.len());
            if bytes.len() < large {
                packed.extend_from_slice(bytes);
            } else {
                found.push(EncodedPart::Packed(std::mem::take(&mut packed)));
                found.push(EncodedPart::Argument(argument));
            }
            packed.extend_from_slice(b"\r\n");
        }
    }
    if !packed.is_empty() {
        found.push(EncodedPart::Packed(packed));
    }
    found
}

/// Writes RESP into space that is known to be large enough.
pub(crate) struct Writer<'o> {
    pub(crate) out: &'o mut [u8],
    pub(crate) at: usize,
}

impl Writer<'_> {
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// The line in front of an array (`*`) or a bulk string (`$`).
    #[inline]
    pub(crate) fn header(&mut self, kind: u8, number: usize) {
        // Nearly all have one to three digits: one store of 8 bytes, of which what is not meant is written over.
        if number < 1000
            && let Some(space) = self.out[self.at..].first_chunk_mut::<8>()
        {
            let digit = |place: usize| b'0' + (number / place % 10) as u8;
            let size;
            (*space, size) = match number {
                0..10 => ([kind, digit(1), b'\r', b'\n', 0, 0, 0, 0], 4),
                10..100 => ([kind, digit(10), digit(1), b'\r', b'\n', 0, 0, 0], 5),
                _ => ([kind, digit(100), digit(10), digit(1), b'\r', b'\n', 0, 0], 6),
            };
            self.at += size;
            return;
        }
        self.write(&[kind]);
        self.write(decimal(number as u64, &mut [0; DIGITS]));
        self.write(b"\r\n");
    }

    /// A whole bulk string.
    #[inline]
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.write(bytes);
        self.write(b"\r\n");
    }
}

/// The line in front of an array (`*`) or a bulk string (`$`).
pub(crate) fn announce(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    out.extend_from_slice(decimal(number as u64, &mut [0; DIGITS]));
    out.extend_from_slice(b"\r\n");
}

/// The digits of a number, in space for them.
#[inline]
pub(crate) fn decimal(mut number: u64, space: &mut [u8; DIGITS]) -> &[u8] {
    let mut from = DIGITS;
    loop {
        from -= 1;
        space[from] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &space[from..];
        }
    }
}

/// Bytes of a whole bulk string of `size` bytes.
#[inline]
pub(crate) fn bulk_size(size: usize) -> usize {
    1 + digits(size as u64) + 2 + size + 2
}

/// Bytes of the line in front of an array of `count`.
#[inline]
pub(crate) fn array_size(count: usize) -> usize {
    1 + digits(count as u64) + 2
}

/// How many digits a number has.
#[inline]
pub(crate) fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}
