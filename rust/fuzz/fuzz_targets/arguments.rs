//! Any arguments of PRODUCE: refused in words of ours, or read so that nothing is lost; and what is built is a batch.
#![no_main]

use korvet_codec::batch::validate_batch;
use korvet_codec::text::{Encoding, Limits, ProduceRun, TopicPlan, parse_produce, write_messages};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(found) = parse_produce(data) {
        let again = [found.topic, b" ", found.key, b":", found.value].concat();
        let rest = data.strip_prefix(&again[..]).expect("the arguments begin with what was read");
        assert!(matches!(rest, b"" | b" acks=0" | b" acks=1" | b" acks=all"));
        assert!(!found.key.contains(&b':') && !found.topic.contains(&b' '));
    }
    let mut run = ProduceRun::new([&b"V1|1|PRODUCE|"[..], data, b"\n"].concat());
    let topics = run.topics().count();
    let mut plans = vec![TopicPlan { partitions: 3, next: u32::MAX, max_bytes: 100 }; topics];
    let built = run.build(&mut plans, 1).expect("what was read can be built");
    for one in &built {
        validate_batch(&one.batch, 0).expect("a batch that a broker takes");
        for encoding in [Encoding::Plain, Encoding::Percent, Encoding::Base64] {
            let mut out = Vec::new();
            let limits = Limits { messages: 10, bytes: 1 << 20, value: 1 << 20, decompressed: 0 };
            write_messages(&one.batch, 0, i64::MAX, encoding, limits, &mut out).expect("it can be written");
            assert!(std::str::from_utf8(&out).is_ok());
            assert!(!out.iter().any(|byte| b"\n\r\0".contains(byte)));
        }
    }
    let outcomes: Vec<_> = built.iter().map(|_| Ok((i64::MAX >> 1, 7))).collect();
    assert!(run.answer(&outcomes, &[]).ends_with(b"\n"));
});
