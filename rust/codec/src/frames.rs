//! Length-prefixed frames out of a byte stream: a signed 32-bit big-endian length, then that many bytes.

use std::ops::Range;

use crate::{Code, Error, Result};

/// A frame of up to this size may be reserved before any of it has arrived.
pub const EAGER: usize = 64 * 1024;

/// Fewer missing bytes than this are not worth reading into their place.
pub const DIRECT: usize = 64 * 1024;

const PREFIX: usize = 4;

/// A stretch of one frame, and how much room its holder should have now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePart<'d> {
    /// The bytes, part of the data given.
    pub bytes: &'d [u8],
    /// Where in the frame they belong; 0 begins a new frame.
    pub at: usize,
    /// How large the frame's holder should be now, in bytes: never less than `at + bytes.len()`, never more than
    /// the whole frame or, if that is larger than [`EAGER`], twice what has arrived.
    pub room: usize,
    /// The frame is whole.
    pub last: bool,
}

/// Cuts a stream into parts of frames and keeps count; the bytes stay with the caller.
#[derive(Debug, Clone)]
pub struct Frames {
    /// Largest legal length in bytes; holds from the next length prefix on.
    pub limit: usize,
    prefix: [u8; PREFIX],
    prefixed: usize,
    size: usize,
    received: usize,
    room: usize,
    dead: Option<Error>,
}

impl Frames {
    /// Frames of at most `limit` bytes each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, prefix: [0; PREFIX], prefixed: 0, size: 0, received: 0, room: 0, dead: None }
    }

    /// Bytes of the unfinished frame so far, its length prefix included.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.prefixed + self.received
    }

    /// Length of the unfinished frame as its prefix announced it; 0 while that is not known.
    #[must_use]
    pub fn announced(&self) -> usize {
        if self.prefixed == PREFIX { self.size } else { 0 }
    }

    /// The next part in `data`, which shrinks by what was used; None once it is used up.
    ///
    /// `NEGATIVE_LENGTH` and `OVERSIZE` (a length above the limit) are final: every later call gives the same error.
    pub fn next<'d>(&mut self, data: &mut &'d [u8]) -> Result<Option<FramePart<'d>>> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        if self.prefixed < PREFIX {
            if let (0, Some((prefix, rest))) = (self.prefixed, data.split_first_chunk()) {
                (self.prefix, *data) = (*prefix, rest); // mostly: four bytes known to be four
            } else {
                let (head, rest) = data.split_at(data.len().min(PREFIX - self.prefixed));
                self.prefix[self.prefixed..self.prefixed + head.len()].copy_from_slice(head);
                self.prefixed += head.len();
                *data = rest;
                if self.prefixed < PREFIX {
                    return Ok(None);
                }
            }
            self.prefixed = PREFIX;
            self.begin()?;
        } else if data.is_empty() {
            return Ok(None);
        }
        let at = self.received;
        let (bytes, rest) = data.split_at(data.len().min(self.size - at));
        if bytes.is_empty() && self.size > 0 {
            return Ok(None);
        }
        *data = rest;
        self.received += bytes.len();
        if at == 0 || self.received > self.room {
            self.room = self.size.min(EAGER.max(2 * self.received));
        }
        let last = self.received == self.size;
        if last {
            (self.prefixed, self.received) = (0, 0);
        }
        Ok(Some(FramePart { bytes, at, room: self.room, last }))
    }

    /// Where in the unfinished frame the next bytes may be put without [`Frames::next`]: none, or [`DIRECT`] or more.
    ///
    /// The holder should be as large as the range's end, which keeps the rule of [`FramePart::room`].
    pub fn rest(&mut self) -> Option<Range<usize>> {
        if self.received == 0 {
            return None;
        }
        self.room = self.size.min(EAGER.max(2 * self.received));
        (self.room - self.received >= DIRECT).then_some(self.received..self.room)
    }

    /// `count` bytes have been put where [`Frames::rest`] said; whether the frame is whole.
    ///
    /// `BAD_VALUE` for more than there was room for.
    pub fn advance(&mut self, count: usize) -> Result<bool> {
        if self.received == 0 || count > self.room - self.received {
            return Err(Error::new(Code::BadValue, format!("there is no room for {count} bytes")));
        }
        self.received += count;
        let last = self.received == self.size;
        if last {
            (self.prefixed, self.received) = (0, 0);
        }
        Ok(last)
    }

    fn begin(&mut self) -> Result<()> {
        let length = i32::from_be_bytes(self.prefix);
        let error = match usize::try_from(length) {
            Ok(size) if size <= self.limit => {
                (self.size, self.received) = (size, 0);
                return Ok(());
            }
            Ok(size) => {
                Error::new(Code::Oversize, format!("a frame of {size} bytes; the limit is {}", self.limit))
            }
            Err(_) => Error::new(Code::NegativeLength, format!("a frame of {length} bytes")),
        };
        self.dead = Some(error.clone());
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Holder {
        open: Vec<u8>,
        whole: Vec<Vec<u8>>,
    }

    impl Holder {
        fn feed(&mut self, frames: &mut Frames, mut data: &[u8]) -> Result<()> {
            while let Some(part) = frames.next(&mut data)? {
                assert!(part.room <= EAGER.max(2 * (part.at + part.bytes.len())));
                self.open.resize(part.room, 0);
                self.open[part.at..part.at + part.bytes.len()].copy_from_slice(part.bytes);
                if part.last {
                    self.whole.push(std::mem::take(&mut self.open));
                }
            }
            assert!(data.is_empty());
            Ok(())
        }
    }

    fn stream(bodies: &[Vec<u8>]) -> Vec<u8> {
        let frame = |body: &Vec<u8>| [&(body.len() as i32).to_be_bytes()[..], body].concat();
        bodies.iter().flat_map(frame).collect()
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_gives_the_same_frames(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
            step in 1_usize..700,
        ) {
            let (mut frames, mut holder) = (Frames::new(300), Holder::default());
            let data = stream(&bodies);
            let mut fed = 0;
            for chunk in data.chunks(step) {
                fed += chunk.len();
                holder.feed(&mut frames, chunk).unwrap();
                let done: usize = holder.whole.iter().map(|body| body.len() + 4).sum();
                prop_assert_eq!(frames.pending(), fed - done);
            }
            prop_assert_eq!(holder.whole, bodies);
            prop_assert_eq!(frames.pending(), 0);
        }
    }

    proptest! {
        #[test]
        fn what_is_put_into_its_place_is_as_what_is_fed(
            sizes in prop::collection::vec(prop_oneof![0_usize..300, 60_000_usize..600_000], 1..5),
            steps in prop::collection::vec((any::<bool>(), 1_usize..300_000), 1..40),
        ) {
            let bodies: Vec<Vec<u8>> =
                sizes.iter().enumerate().map(|(at, size)| (0..*size).map(|n| (n + at) as u8).collect()).collect();
            let (mut frames, mut holder) = (Frames::new(600_000), Holder::default());
            let data = stream(&bodies);
            let mut left = &data[..];
            for (direct, step) in steps.into_iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let place = if direct { frames.rest() } else { None };
                let (now, later) = left.split_at(step.min(left.len()).min(place.as_ref().map_or(step, Range::len)));
                left = later;
                if let Some(place) = place {
                    prop_assert!(place.len() >= DIRECT && place.end <= EAGER.max(2 * place.start));
                    holder.open.resize(place.end.max(holder.open.len()), 0);
                    holder.open[place.start..place.start + now.len()].copy_from_slice(now);
                    if frames.advance(now.len()).unwrap() {
                        holder.whole.push(std::mem::take(&mut holder.open));
                    }
                } else {
                    holder.feed(&mut frames, now).unwrap();
                }
            }
            prop_assert_eq!(holder.whole, bodies);
            prop_assert_eq!(frames.pending(), 0);
        }
    }

    #[test]
    fn no_more_is_taken_than_there_is_room_for() {
        let (mut frames, mut holder) = (Frames::new(1 << 20), Holder::default());
        assert_eq!(frames.rest(), None);
        assert_eq!(frames.advance(1).unwrap_err().code, Code::BadValue);
        holder.feed(&mut frames, &(1_i32 << 20).to_be_bytes()).unwrap();
        assert_eq!(frames.rest(), None); // nothing has arrived that would deserve room
        assert_eq!(frames.announced(), 1 << 20);
        holder.feed(&mut frames, &vec![1; 100_000]).unwrap();
        assert_eq!(frames.rest(), Some(100_000..200_000));
        assert_eq!(frames.advance(100_001).unwrap_err().code, Code::BadValue);
        assert!(!frames.advance(100_000).unwrap());
        assert_eq!(frames.pending(), 200_004);
        assert_eq!(frames.rest(), Some(200_000..400_000));
    }

    #[test]
    fn large_frames_grow_as_they_arrive() {
        let body = vec![7; 1_000_000];
        let (mut frames, mut holder) = (Frames::new(body.len()), Holder::default());
        for chunk in stream(std::slice::from_ref(&body)).chunks(1000) {
            holder.feed(&mut frames, chunk).unwrap();
        }
        assert_eq!(holder.whole, [body]);
    }

    #[test]
    fn an_illegal_length_is_final() {
        for (length, code) in [(-1, Code::NegativeLength), (11, Code::Oversize), (i32::MAX, Code::Oversize)] {
            let (mut frames, mut holder) = (Frames::new(10), Holder::default());
            assert_eq!(holder.feed(&mut frames, &length.to_be_bytes()).unwrap_err().code, code);
            assert_eq!(holder.feed(&mut frames, &[]).unwrap_err().code, code);
        }
    }

    #[test]
    fn a_changed_limit_holds_from_the_next_prefix() {
        let (mut frames, mut holder) = (Frames::new(10), Holder::default());
        holder.feed(&mut frames, &[0, 0, 0, 10, 1]).unwrap();
        frames.limit = 2;
        holder.feed(&mut frames, &[1; 9]).unwrap();
        assert_eq!(holder.whole, [vec![1; 10]]);
        assert_eq!(holder.feed(&mut frames, &[0, 0, 0, 3]).unwrap_err().code, Code::Oversize);
    }
}
