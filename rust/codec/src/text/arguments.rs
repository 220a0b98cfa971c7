//! The arguments of PRODUCE: `topic key:value [acks=0|1|all]`.

use memchr::{memchr, memrchr};

/// The longest name of a topic, by Kafka's rule.
const LONGEST: usize = 249;

/// The arguments of a PRODUCE line. Keys and values are as they stood in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Produce<'d> {
    /// A legal name.
    pub topic: &'d [u8],
    /// Everything before the first colon; empty stands for no key.
    pub key: &'d [u8],
    /// Everything behind it, but for the `acks` at the end. It may hold blanks, bars and colons.
    pub value: &'d [u8],
}

/// The arguments, or a sentence that says what is wrong with them.
///
/// `acks=` counts as the last word behind the key and its colon only, so that a key may begin with it.
pub fn parse_produce(arguments: &[u8]) -> Result<Produce<'_>, &'static str> {
    let Some(blank) = memchr(b' ', arguments) else {
        return Err("PRODUCE takes: topic key:value [acks=0|1|all]");
    };
    let (topic, mut message) = (&arguments[..blank], &arguments[blank + 1..]);
    if !is_legal(topic) {
        return Err("a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'");
    }
    let Some(colon) = memchr(b':', message) else { return Err("a message is written as key:value") };
    if let Some(last) = memrchr(b' ', message)
        && last > colon
        && let Some(acks) = message[last + 1..].strip_prefix(b"acks=")
    {
        if !matches!(acks, b"0" | b"1" | b"all") {
            return Err("acks is 0, 1 or all");
        }
        message = &message[..last];
    }
    Ok(Produce { topic, key: &message[..colon], value: &message[colon + 1..] })
}

fn is_legal(topic: &[u8]) -> bool {
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LONGEST).contains(&topic.len()) && topic.iter().all(legal) && topic != b"." && topic != b".."
}
