//! Any stream of replies, cut anywhere: the same values or the same error.
#![no_main]

use std::convert::Infallible;

use korvet_codec::resp::{Groups, Replies, Sink};
use korvet_codec::{Code, Stop};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 16;

/// Replies written out again as text, which is enough to compare them.
struct Text;

impl Sink for Text {
    type Value = String;
    type Failure = Infallible;

    fn null(&mut self) -> String {
        "null".into()
    }
    fn boolean(&mut self, value: bool) -> String {
        value.to_string()
    }
    fn integer(&mut self, value: i64) -> String {
        value.to_string()
    }
    fn big(&mut self, digits: &str) -> Result<String, Infallible> {
        Ok(digits.to_owned())
    }
    fn float(&mut self, value: f64) -> String {
        value.to_string()
    }
    fn text(&mut self, value: &str) -> String {
        format!("{value:?}")
    }
    fn bytes(&mut self, value: &[u8]) -> String {
        format!("{value:?}")
    }
    fn error(&mut self, message: &str) -> Result<String, Infallible> {
        Ok(format!("error {message:?}"))
    }
    fn list(&mut self, items: Vec<String>) -> Result<String, Infallible> {
        Ok(format!("[{}]", items.join(", ")))
    }
}

fn parse(data: &[u8], step: usize) -> (Vec<String>, Result<usize, Code>) {
    let (mut replies, mut done) = (Replies::new(LIMIT), Vec::new());
    for chunk in data.chunks(step) {
        match replies.feed(chunk, &mut Text, &mut done) {
            Ok(()) => (),
            Err(Stop::Rule(error)) => return (done, Err(error.code)),
            Err(Stop::Foreign(never)) => match never {},
        }
    }
    (done, Ok(replies.pending()))
}

/// How many replies end in the stream, and what is left of it or the error that ends it.
fn cut(data: &[u8], step: usize) -> (usize, Result<usize, Code>) {
    let (mut groups, mut held, mut done) = (Groups::new(LIMIT), Vec::new(), 0);
    for chunk in data.chunks(step) {
        held.extend_from_slice(chunk);
        loop {
            match groups.end(&held) {
                Ok(Some(end)) => drop(held.drain(..end)),
                Ok(None) => break,
                Err(error) => return (done, Err(error.code)),
            }
            done += 1;
        }
    }
    (done, Ok(held.len()))
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, stream)) = data.split_first() else { return };
    let (found, end) = parse(stream, stream.len().max(1));
    assert_eq!((found.len(), end), cut(stream, usize::from(step).max(1)));
    assert_eq!((found, end), parse(stream, usize::from(step).max(1)));
});
