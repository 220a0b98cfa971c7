use proptest::prelude::*;

use super::*;
use crate::batch::{Header, Records, payload};

fn cut(stream: &[u8], step: usize, limit: usize, most: usize) -> (Vec<Vec<u8>>, usize) {
    let (mut lines, mut given) = (Lines::new(limit), Vec::new());
    for chunk in stream.chunks(step.max(1)) {
        lines.feed(chunk, most, |line| given.push(line.to_vec()));
        loop {
            let before = given.len();
            lines.feed(&[], most, |line| given.push(line.to_vec()));
            if given.len() == before {
                break;
            }
        }
    }
    (given, lines.pending())
}

/// Runs taken apart again: which lines lie in one run depends on how the stream was cut.
fn apart(given: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for one in given {
        if one != OVER && one.ends_with(b"\n") {
            all.extend(
                one[..one.len() - 1].split(|byte| *byte == b'\n').map(|line| lines::content(line).to_vec()),
            );
        } else {
            all.push(one.clone());
        }
    }
    all
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![
            Just(b"V1|1|PRODUCE|t k:v".to_vec()),
            Just(b"V1|2|PRODUCE|t k:v acks=all".to_vec()),
            Just(b"V1|3|PING|\r".to_vec()),
            prop::collection::vec(any::<u8>().prop_filter("no line end", |byte| *byte != b'\n'), 0..50),
        ],
        0..20,
    )
    .prop_map(|lines| lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect())
}

proptest! {
    #[test]
    fn any_cut_of_the_stream_gives_the_same_lines(stream in text(), step in 1_usize..60, most in 1_usize..5) {
        let (whole, left) = cut(&stream, stream.len(), 1000, usize::MAX);
        let (pieces, rest) = cut(&stream, step, 1000, most);
        prop_assert_eq!(apart(&whole), apart(&pieces));
        prop_assert_eq!((left, rest), (0, 0));
        let by_hand: Vec<_> = stream.split_inclusive(|byte| *byte == b'\n')
            .map(|line| lines::content(&line[..line.len() - 1]).to_vec()).collect();
        prop_assert_eq!(apart(&whole), by_hand);
    }

    #[test]
    fn no_more_is_held_than_a_line_may_have(
        stream in prop::collection::vec(any::<u8>(), 0..300),
        step in 1_usize..20,
    ) {
        let mut lines = Lines::new(10);
        for chunk in stream.chunks(step) {
            lines.feed(chunk, usize::MAX, |line| assert!(line == OVER || line.len() <= 10));
            prop_assert!(lines.pending() <= 11);
        }
    }

    #[test]
    fn base64_and_percent_lose_nothing(value in prop::collection::vec(any::<u8>(), 0..100)) {
        let (mut percent, mut base64) = (Vec::new(), Vec::new());
        Encoding::Percent.write(&value, &mut percent);
        Encoding::Base64.write(&value, &mut base64);
        let mut found = Vec::new();
        let mut rest = &percent[..];
        while let [first, tail @ ..] = rest {
            if *first == b'%' {
                found.push(u8::from_str_radix(std::str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
                rest = &tail[2..];
            } else {
                found.push(*first);
                rest = tail;
            }
        }
        prop_assert_eq!(&found, &value);
        prop_assert!(!percent.iter().chain(&base64).any(|byte| b",\n\r\0 ".contains(byte)));
        prop_assert_eq!(base64.len(), value.len().div_ceil(3) * 4);
        let mut plain = Vec::new();
        Encoding::Plain.write(&value, &mut plain);
        prop_assert!(std::str::from_utf8(&plain).is_ok());
        prop_assert!(!plain.iter().any(|byte| b"\n\r\0".contains(byte)));
        for out in [percent.len(), base64.len()] {
            prop_assert!(out <= 3 * value.len() + 4);
        }
    }

    #[test]
    fn what_is_produced_is_what_is_consumed(
        records in prop::collection::vec(("[a-c]{0,2}", "[a-z :|]{0,8}"), 1..40),
        partitions in 1_u32..4,
        max_bytes in 70_usize..400,
    ) {
        let stream: Vec<u8> = records.iter().enumerate()
            .flat_map(|(at, (key, value))| format!("V1|{at}|PRODUCE|t {key}:{value}\n").into_bytes()).collect();
        let mut run = ProduceRun::new(stream);
        prop_assert_eq!(run.topics().collect::<Vec<_>>(), ["t"]);
        let built = run.build(&mut [TopicPlan { partitions, next: 0, max_bytes }], 7).unwrap();
        let mut stored = 0;
        for one in &built {
            let header = Header::parse_only(&one.batch).unwrap();
            stored += header.count as usize;
            prop_assert!(one.batch.len() <= max_bytes || header.count == 1);
            let mut out = Vec::new();
            let limits = Limits { messages: 100, bytes: 1000, value: 1000, decompressed: 0 };
            let done = write_messages(&one.batch, 0, i64::MAX, Encoding::Plain, limits, &mut out).unwrap();
            prop_assert_eq!(done.messages, header.count as usize);
            let body = payload(&header, &one.batch, 0).unwrap();
            let values: Vec<_> = Records::new(&header, &body).unwrap().enumerate()
                .map(|(at, record)| format!("{at}:{}", String::from_utf8_lossy(record.unwrap().value.unwrap()))).collect();
            prop_assert_eq!(String::from_utf8(out).unwrap(), values.join(","));
        }
        prop_assert_eq!(stored, records.len());
        let outcomes: Vec<Outcome<'_>> = built.iter().map(|_| Ok((100, 200))).collect();
        let answer = String::from_utf8(run.answer(&outcomes, &[])).unwrap();
        prop_assert_eq!(answer.lines().count(), records.len());
        for (at, line) in answer.lines().enumerate() {
            let begin = format!("V1|{at}|OK|partition=");
            prop_assert!(line.starts_with(&begin) && line.ends_with(" hw=200"));
        }
    }
}

#[test]
fn lines_that_are_too_long_end_it() {
    for stream in [&b"12345678901\nV1|1|PING|\n"[..], b"123456789012", b"V1|1|PRODUCE|t a:b\n"] {
        for step in [1, 100] {
            assert_eq!(cut(stream, step, 10, 100).0, [OVER.to_vec()]);
        }
    }
    assert_eq!(cut(b"1234567890\r\n", 1, 10, 100).0, [b"1234567890".to_vec()]);
}

#[test]
fn a_run_asks_for_one_thing() {
    let stream =
        b"V1|1|PRODUCE|t a:b\nV1|2|PRODUCE|t a:b acks=1\r\nV1|3|PRODUCE|t a:b acks=all\nV1|4|PING|\n";
    let (given, _) = cut(stream, 1000, 1000, 100);
    assert_eq!(given.len(), 3);
    assert_eq!(given[2], b"V1|4|PING|");
    assert!(!ProduceRun::new(given[0].clone()).all());
    assert!(ProduceRun::new(given[1].clone()).all());
}

#[test]
fn arguments_say_what_is_wrong() {
    let read = |text: &'static str| {
        parse_produce(text.as_bytes()).map(|found| (found.topic, found.key, found.value))
    };
    assert_eq!(read("t k:v"), Ok((&b"t"[..], &b"k"[..], &b"v"[..])));
    assert_eq!(read("t k:v acks=all"), Ok((&b"t"[..], &b"k"[..], &b"v"[..])));
    assert_eq!(read("t :a:b|c  d acks=0 e"), Ok((&b"t"[..], &b""[..], &b"a:b|c  d acks=0 e"[..])));
    assert_eq!(read("t acks=1:5"), Ok((&b"t"[..], &b"acks=1"[..], &b"5"[..])));
    assert_eq!(read("t k:v "), Ok((&b"t"[..], &b"k"[..], &b"v "[..])));
    for wrong in ["", "t", "t k", "t acks=all", " t k:v", ". k:v", "t k:v acks=2", "t k:v acks=", "a/b k:v"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn bytes_that_are_no_text_are_answered_without_their_id() {
    let run = ProduceRun::new(
        b"V1|a|PRODUCE|t k:\xff\nV1|b|PRODUCE|t k:\rv\nV1|c|PRODUCE|t k:\0\nV1|d|PRODUCE|t k:v\r\n".to_vec(),
    );
    let answer = String::from_utf8(run.answer(&[], &["UNKNOWN_TOPIC|there is none"])).unwrap();
    let lines: Vec<_> = answer.lines().collect();
    assert!(lines[..3].iter().all(|line| line.starts_with("V1|0|ERR|BAD_REQUEST|")));
    assert_eq!(lines[3], "V1|d|ERR|UNKNOWN_TOPIC|there is none");
}
