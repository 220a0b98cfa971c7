//! The text protocol: lines with a window of so many under way, every answer checked.

use std::io::IoSlice;
use std::time::Instant;

use crate::Outcome;
use crate::options::Options;
use crate::schedule::{Schedule, Tally};
use crate::socket::{BUFFER, Socket};

/// Messages that a CONSUME gives which asks for no number.
const MESSAGES: u64 = 500;
const HEAD: &[u8] = b"V1|1|OK|";

/// PRODUCE one line again and again, acks=1. Errors: an answer that is none, another partition, an offset that does not
/// follow the one before.
pub fn produce(options: &Options, schedule: Schedule) -> Outcome<Tally> {
    let line = format!("V1|1|PRODUCE|{} key:{}\n", options.topic, "x".repeat(options.record_bytes));
    let window = line.repeat(options.in_flight).into_bytes();
    let mut socket = Socket::open(&options.broker, BUFFER)?;
    let mut tally = Tally::default();
    let (mut under_way, mut next) = (0, None);
    loop {
        let sending = options.goes_on(&schedule, tally.accepted_records);
        if sending {
            let room = options.in_flight - under_way;
            socket.send(&mut [IoSlice::new(&window[..room * line.len()])])?;
            under_way += room;
        }
        if under_way == 0 {
            return Ok(tally);
        }
        socket.fill(BUFFER / 2)?;
        let (answers, offset) = check_produced(socket.unread(), next)?;
        next = offset;
        let size = socket.unread().len() - last_part(socket.unread());
        socket.take(size);
        under_way -= answers;
        tally.count_many(&schedule, answers as u64, options.record_bytes as u64);
    }
}

/// CONSUME from `options.blocks` places in turn, 500 messages apart, the log's first message on, again and again.
/// Errors: an answer without 500 messages of the size that was written, and one that is not the same as the first of its
/// place.
pub fn consume(options: &Options, schedule: Schedule) -> Outcome<Tally> {
    let line =
        |block: u64| format!("V1|1|CONSUME|{} 0 {}\n", options.topic, MESSAGES * (block % options.blocks));
    let mut socket = Socket::open(&options.broker, BUFFER)?;
    let mut tally = Tally::default();
    let mut firsts = Vec::new();
    for block in 0..options.blocks {
        socket.send(&mut [IoSlice::new(line(block).as_bytes())])?;
        while socket.unread().last() != Some(&b'\n') {
            socket.fill(BUFFER / 2)?;
        }
        let first = socket.take(socket.unread().len()).to_vec();
        check_consumed(&first, options.record_bytes, MESSAGES * block)?;
        firsts.push(first);
    }
    let (mut sent, mut answered) = (0, 0);
    loop {
        if Instant::now() < schedule.stop {
            let until = answered + options.in_flight as u64;
            let lines: String = (sent..until).map(line).collect();
            socket.send(&mut [IoSlice::new(lines.as_bytes())])?;
            sent = until;
        }
        if answered == sent {
            return Ok(tally);
        }
        let began = Instant::now();
        let mut first = &firsts[(answered % options.blocks) as usize];
        while socket.unread().len() < first.len() {
            socket.fill(BUFFER / 2)?;
        }
        while answered < sent && socket.unread().len() >= first.len() {
            if socket.take(first.len()) != first {
                return Err("an answer is not the same as the first".into());
            }
            answered += 1;
            tally.count(&schedule, began, MESSAGES, MESSAGES * options.record_bytes as u64);
            first = &firsts[(answered % options.blocks) as usize];
        }
    }
}

/// How many whole answers these are, and the offset that the next one must have.
fn check_produced(answers: &[u8], mut next: Option<u64>) -> Outcome<(usize, Option<u64>)> {
    let mut count = 0;
    for answer in answers[..answers.len() - last_part(answers)].split_inclusive(|&byte| byte == b'\n') {
        let offset = answer
            .strip_prefix(b"V1|1|OK|partition=0 offset=")
            .and_then(read_number)
            .ok_or_else(|| format!("to PRODUCE: {}", String::from_utf8_lossy(answer)))?;
        if next.is_some_and(|next| next != offset) {
            return Err(format!("offset {offset} where {next:?} is next").into());
        }
        next = Some(offset + 1);
        count += 1;
    }
    Ok((count, next))
}

/// `from`: the first offset; a server that stores nothing begins with 0 wherever it is asked to.
fn check_consumed(answer: &[u8], size: usize, from: u64) -> Outcome<()> {
    let text = answer.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix(b"messages="));
    let messages = text.and_then(|text| text.split(|&byte| byte == b' ').next()).unwrap_or_default();
    let first = if messages.starts_with(b"0:") { 0 } else { from };
    let mut wanted = first;
    for message in messages.split(|&byte| byte == b',') {
        let value = message.strip_prefix(format!("{wanted}:").as_bytes());
        if value.is_none_or(|value| value.len() != size) {
            break;
        }
        wanted += 1;
    }
    if wanted == first + MESSAGES {
        return Ok(());
    }
    Err(format!("500 messages were asked for; message {wanted} in {} bytes is wrong", answer.len()).into())
}

/// Bytes behind the last line end.
fn last_part(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|&&byte| byte != b'\n').count()
}

/// The number up to the next blank.
fn read_number(text: &[u8]) -> Option<u64> {
    let digits = text.split(|&byte| byte == b' ').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn produced_offsets_follow_each_other() {
        let answers = b"V1|1|OK|partition=0 offset=7 hw=8\nV1|1|OK|partition=0 offset=8 hw=9\nV1|1|OK|parti";
        assert_eq!(check_produced(answers, None).unwrap(), (2, Some(9)));
        assert_eq!(check_produced(answers, Some(7)).unwrap(), (2, Some(9)));
        assert!(check_produced(answers, Some(8)).is_err());
        assert!(check_produced(b"V1|1|ERR|NOT_LEADER|no\n", None).is_err());
    }

    #[test]
    fn consumed_are_five_hundred_messages() {
        let answer = |from: u64, count: u64| {
            let messages: Vec<String> = (from..from + count).map(|offset| format!("{offset}:xx")).collect();
            format!("V1|1|OK|messages={} hw=9999\n", messages.join(",")).into_bytes()
        };
        assert!(check_consumed(&answer(0, 500), 2, 0).is_ok());
        assert!(check_consumed(&answer(0, 499), 2, 0).is_err());
        assert!(check_consumed(&answer(0, 500), 3, 0).is_err());
        assert!(check_consumed(&answer(1000, 500), 2, 1000).is_ok());
        assert!(check_consumed(&answer(0, 500), 2, 1000).is_ok());
        assert!(check_consumed(&answer(500, 500), 2, 1000).is_err());
    }
}
