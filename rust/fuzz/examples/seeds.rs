//! Writes a first corpus for every target: `cargo run --example seeds -- rust/fuzz/corpus`.
//!
//! Each seed is one byte that the target reads as its choice (step, version, compression, …), then good input.

use std::path::Path;
use std::{env, fs, io};

use korvet_codec::batch::Origin;
use korvet_codec::columns::build_batch;
use korvet_codec::compression::{Compression, compress};
use korvet_codec::resp::words;

fn main() -> io::Result<()> {
    let top = env::args().nth(1).expect("the folder to write to");
    let top = Path::new(&top);
    let batches: Vec<_> = Compression::ALL.into_iter().map(batch).collect();

    // The last one is large enough to be put into its place.
    let large = [&300_000_u32.to_be_bytes()[..], &vec![7; 300_000], &[0, 0, 0, 1, 8]].concat();
    let frames = [seed(1, &[0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0]), seed(200, &[0, 1, 0, 0, 9]), seed(20, &large)];
    write(top, "frames", &frames)?;
    write(top, "schema", &schemas())?;
    write(top, "resp", &replies())?;
    write(top, "batch", &batches.iter().map(|batch| seed(3, batch)).collect::<Vec<_>>())?;
    write(top, "messages", &(0..2).flat_map(messages).collect::<Vec<_>>())?;
    let packed = Compression::ALL.into_iter().enumerate().map(|(which, compression)| {
        let mut out = vec![which as u8];
        compress(compression, &b"the same words, the same words, the same words".repeat(20), &mut out);
        out
    });
    write(top, "decompress", &packed.collect::<Vec<_>>())?;
    let arguments: [&[u8]; 4] = [b"t k:v acks=all", b"t :a b acks=1", b"t k acks=0:5", b"t a:b|c"];
    write(top, "arguments", &arguments.map(<[u8]>::to_vec))?;
    let lines = arguments.map(|one| [b"V1|1|PRODUCE|", one, b"\n"].concat()).concat();
    write(top, "lines", &[seed(7, &lines), seed(3, b"V1|1|PING|\r\nV1|2|CONSUME|t 0 0\nV1|")])?;
    write(top, "stream", &ranges(&batches))
}

fn write(top: &Path, target: &str, seeds: &[Vec<u8>]) -> io::Result<()> {
    let folder = top.join(target);
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}

fn seed(choice: u8, bytes: &[u8]) -> Vec<u8> {
    [&[choice], bytes].concat()
}

/// Two records, the second with a null key.
fn batch(compression: Compression) -> Vec<u8> {
    let longs = |numbers: &[i64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    let ints = |numbers: &[i32]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    let (timestamp, key_offsets, value_offsets) = (longs(&[1000, 1001]), ints(&[0, 3, 3]), ints(&[0, 5, 10]));
    let columns: [(&str, &[u8]); 7] = [
        ("timestamp", &timestamp),
        ("key_offsets", &key_offsets),
        ("key", b"key"),
        ("key_valid", &[1, 0]),
        ("value_offsets", &value_offsets),
        ("value", b"valuevalue"),
        ("value_valid", &[1, 1]),
    ];
    build_batch(&columns, compression, 0, Origin::NONE).expect("good columns")
}

/// A message set of Kafka 0.7 of this magic, then the same in a wrapper for each compression that it has.
fn messages(magic: u8) -> Vec<Vec<u8>> {
    let message = |attributes: &[u8], payload: &[u8]| {
        let crc = crc32fast::hash(payload).to_be_bytes();
        let length = (1 + attributes.len() + 4 + payload.len()) as u32;
        [&length.to_be_bytes()[..], &[attributes.len() as u8], attributes, &crc, payload].concat()
    };
    let set = [b"hello", b"world"].map(|payload| message(&[0][..usize::from(magic)], payload)).concat();
    let wrapped = Compression::ALL[1..3].iter().map(|compression| {
        let mut packed = Vec::new();
        compress(*compression, &set, &mut packed);
        seed(0, &message(&[compression.bits()], &packed))
    });
    [seed(1, &set)].into_iter().chain(wrapped).collect()
}

/// The message of `fuzz_targets/schema.rs`, by hand: with nulls and with values, plain and flexible.
fn schemas() -> Vec<Vec<u8>> {
    let plain = b"\0\x01\xff\xff\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff0123456789abcdef";
    let full = b"\0\x01\0\x02me\x01\0\0\0\x01\0\x01a\0\0\0\x01x\0\0\0\x01y\0\0\0\x01\0\0\0\x05\0\x01n\0\0\0\x01\x02\x01\
\0\0\0\x06\xff\xff\0\0\0\0abcdef0123456789";
    let flexible = b"\0\x01\xff\xff\0\x01\x02\x02a\x02x\x02y\x02\0\0\0\x05\x02n\x02\x02\0\xff\x02\0\x08\0\0\0\0\0\0\0\x09\x03\x01\x01";
    vec![seed(1, plain), seed(1, full), seed(2, flexible)]
}

/// Batches to append, then replies to XRANGE: our own entries, other programs', whole batches.
fn ranges(batches: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let entry = |id: &str, fields: &[&[u8]]| {
        let mut out = b"*2\r\n".to_vec();
        out.extend(words(&[id]));
        out.extend(format!("*{}\r\n", fields.len()).into_bytes());
        out.extend(words(fields));
        out
    };
    let ours: [&[u8]; 10] = [
        b"key",
        b"k",
        b"value",
        b"v",
        b"timestamp",
        b"1700000000000",
        b"header.a",
        b"b",
        b"null.header.c",
        b"",
    ];
    let json: &[u8] = br#"{"source":"web","n":[1,{"x":null}],"none":null,"\u00e9\n":"\ud83d\ude00"}"#;
    let ranges = [
        [&b"*2\r\n"[..], &entry("1700000000000-0", &ours), &entry("1700000000000-1", &ours[2..])].concat(),
        [&b"*2\r\n"[..], &entry("1-1024", &[b"a", b"b"]), &entry("2-0", &[b"headers", json, b"x", b"y"])]
            .concat(),
        [&b"*1\r\n"[..], &entry("0-0", &[b"batch", &batches[0]])].concat(),
    ];
    let all = batches.iter().cloned().chain(ranges);
    all.map(|bytes| [&[3, 10], &bytes[..]].concat()).collect()
}

fn replies() -> Vec<Vec<u8>> {
    let texts = [
        "+OK\r\n-ERR no\r\n:12\r\n$3\r\nabc\r\n$-1\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n",
        "%1\r\n+a\r\n#t\r\n~1\r\n,1.5\r\n(123456789012345678901\r\n_\r\n=7\r\ntxt:abc\r\n|1\r\n+k\r\n+v\r\n:1\r\n!3\r\nERR\r\n",
    ];
    texts.iter().map(|text| seed(2, text.as_bytes())).collect()
}
