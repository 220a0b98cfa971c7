use std::convert::Infallible;

use proptest::prelude::*;

use super::*;
use crate::{Code, Stop};

#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Null,
    Bool(bool),
    Int(i64),
    Big(String),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Error(String),
    List(Vec<Reply>),
}

struct Tree;

impl Sink for Tree {
    type Value = Reply;
    type Failure = Infallible;

    fn null(&mut self) -> Reply {
        Reply::Null
    }
    fn boolean(&mut self, value: bool) -> Reply {
        Reply::Bool(value)
    }
    fn integer(&mut self, value: i64) -> Reply {
        Reply::Int(value)
    }
    fn big(&mut self, digits: &str) -> Result<Reply, Infallible> {
        Ok(Reply::Big(digits.to_owned()))
    }
    fn float(&mut self, value: f64) -> Reply {
        Reply::Float(value)
    }
    fn text(&mut self, value: &str) -> Reply {
        Reply::Text(value.to_owned())
    }
    fn bytes(&mut self, value: &[u8]) -> Reply {
        Reply::Bytes(value.to_owned())
    }
    fn error(&mut self, message: &str) -> Result<Reply, Infallible> {
        Ok(Reply::Error(message.to_owned()))
    }
    fn list(&mut self, items: Vec<Reply>) -> Result<Reply, Infallible> {
        Ok(Reply::List(items))
    }
}

fn parse(data: &[u8], step: usize, limit: usize) -> Result<(Vec<Reply>, usize), Code> {
    let (mut replies, mut done) = (Replies::new(limit), Vec::new());
    for chunk in data.chunks(step.max(1)) {
        if let Err(Stop::Rule(error)) = replies.feed(chunk, &mut Tree, &mut done) {
            assert!(
                matches!(replies.feed(b"", &mut Tree, &mut done), Err(Stop::Rule(again)) if again == error)
            );
            return Err(error.code);
        }
    }
    Ok((done, replies.pending()))
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    let text = match reply {
        Reply::Null => "_\r\n".to_owned(),
        Reply::Bool(value) => format!("#{}\r\n", if *value { 't' } else { 'f' }),
        Reply::Int(value) => format!(":{value}\r\n"),
        Reply::Big(digits) => format!("({digits}\r\n"),
        Reply::Float(value) => format!(",{value}\r\n"),
        Reply::Text(text) => format!("+{text}\r\n"),
        Reply::Error(text) => format!("-{text}\r\n"),
        Reply::Bytes(bytes) => {
            out.extend(format!("${}\r\n", bytes.len()).as_bytes());
            out.extend(bytes);
            "\r\n".to_owned()
        }
        Reply::List(items) => {
            out.extend(format!("*{}\r\n", items.len()).as_bytes());
            for item in items {
                write(item, out);
            }
            return;
        }
    };
    out.extend(text.as_bytes());
}

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    let leaf = prop_oneof![
        Just(Reply::Null),
        any::<bool>().prop_map(Reply::Bool),
        any::<i64>().prop_map(Reply::Int),
        "-?1[0-9]{20,40}".prop_map(Reply::Big),
        (-1e300..1e300).prop_map(Reply::Float),
        "[a-zé ]{0,20}".prop_map(Reply::Text),
        "[A-Z]{0,20}".prop_map(Reply::Error),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Reply::Bytes),
    ];
    let tree =
        leaf.prop_recursive(7, 40, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Reply::List));
    prop::collection::vec(tree, 0..6)
}

/// The groups that [`Groups`] cuts out of `data`, fed as the binding does it.
fn cut(data: &[u8], step: usize, limit: usize, joined: &[usize]) -> Result<(Vec<Vec<u8>>, usize), Code> {
    let (mut groups, mut held, mut done) = (Groups::new(limit), Vec::new(), Vec::new());
    for count in joined {
        groups.join(*count);
    }
    for chunk in data.chunks(step.max(1)) {
        held.extend_from_slice(chunk);
        while let Some(end) = groups.end(&held).map_err(|error| {
            assert_eq!(groups.end(b"+"), Err(error.clone()));
            error.code
        })? {
            let rest = held.split_off(end);
            done.push(std::mem::replace(&mut held, rest));
        }
    }
    Ok((done, held.len()))
}

proptest! {
    #[test]
    fn any_cut_of_the_stream_gives_the_same_replies(expected in replies(), step in 1_usize..50) {
        let mut data = Vec::new();
        for reply in &expected {
            write(reply, &mut data);
        }
        let (whole, left) = cut(&data, step, 1 << 20, &[]).unwrap();
        prop_assert_eq!((whole.concat(), left), (data.clone(), 0));
        for (raw, reply) in whole.iter().zip(&expected) {
            let (value, size) = super::parse_reply(raw, &mut Tree).unwrap();
            prop_assert_eq!((&value, size), (reply, raw.len()));
            prop_assert!(matches!(
                super::parse_reply(&raw[..size - 1], &mut Tree),
                Err(Stop::Rule(error)) if error.code == Code::Truncated
            ));
        }
        if expected.len() > 2 {
            let (joined, left) = cut(&data, step, 1 << 20, &[0, 2, 1]).unwrap();
            prop_assert_eq!((&joined[0], joined.len(), left), (&whole[..2].concat(), whole.len() - 1, 0));
        }
        prop_assert_eq!(parse(&data, step, 1 << 20).unwrap(), (expected, 0));
    }

    #[test]
    fn any_cut_of_garbage_ends_the_same(data in "[-+:$*%|,#(_=!~>0-9tf\r\n]{0,60}", step in 1_usize..9) {
        let (whole, pieces) = (parse(data.as_bytes(), 1000, 50), parse(data.as_bytes(), step, 50));
        prop_assert_eq!(&whole, &pieces);
        let raw = cut(data.as_bytes(), step, 50, &[]);
        prop_assert_eq!(raw.map(|(done, left)| (done.len(), left)), whole.map(|(done, left)| (done.len(), left)));
    }

    #[test]
    fn commands_read_back_as_arrays(
        commands in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..12), 0..4)
    ) {
        let mut out = vec![0; encoded_size(&commands)];
        encode_commands(&commands, &mut out);
        for large in [0, 5, 100] {
            let words = |part: EncodedPart<Vec<u8>>| match part {
                EncodedPart::Packed(bytes) => bytes,
                EncodedPart::Argument(bytes) => {
                    assert!(bytes.len() >= large);
                    bytes.clone()
                }
            };
            prop_assert_eq!(encode_command_parts(&commands, large).into_iter().flat_map(words).collect::<Vec<_>>(), out.clone());
        }
        let list = |arguments: Vec<Vec<u8>>| Reply::List(arguments.into_iter().map(Reply::Bytes).collect());
        let expected: Vec<_> = commands.into_iter().map(list).collect();
        prop_assert_eq!(parse(&out, out.len(), 1 << 20).unwrap(), (expected, 0));
    }
}

#[test]
fn each_kind_of_reply() {
    let cases: [(&str, Reply); 14] = [
        ("$-1\r\n", Reply::Null),
        ("*-1\r\n", Reply::Null),
        ("$0\r\n\r\n", Reply::Bytes(vec![])),
        ("*0\r\n", Reply::List(vec![])),
        ("(12\r\n", Reply::Int(12)),
        (",-inf\r\n", Reply::Float(f64::NEG_INFINITY)),
        ("=5\r\ntxt:a\r\n", Reply::Bytes(b"a".to_vec())),
        ("!3\r\nERR\r\n", Reply::Error("ERR".into())),
        ("-\u{fffd}\r\n", Reply::Error("\u{fffd}".into())),
        ("~1\r\n:1\r\n", Reply::List(vec![Reply::Int(1)])),
        (">1\r\n:1\r\n", Reply::List(vec![Reply::Int(1)])),
        ("%1\r\n:1\r\n:2\r\n", Reply::List(vec![Reply::Int(1), Reply::Int(2)])),
        ("|1\r\n+a\r\n:2\r\n:3\r\n", Reply::Int(3)),
        ("|0\r\n*1\r\n|1\r\n+a\r\n:2\r\n:3\r\n", Reply::List(vec![Reply::Int(3)])),
    ];
    for (text, reply) in cases {
        assert_eq!(parse(text.as_bytes(), 1000, 100), Ok((vec![reply], 0)), "{text:?}");
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    let deep = "*1\r\n".repeat(MOST_LEVELS + 1);
    let digits = format!("({}\r\n", "1".repeat(1025));
    for text in [
        "\r\n",
        "hello\r\n",
        ":\r\n",
        ":1x\r\n",
        ":9223372036854775808\r\n",
        "$-2\r\n",
        "*-2\r\n",
        "$?\r\n",
        "$1\r\nabc",
        "#x\r\n",
        "_1\r\n",
        ",1_0\r\n",
        ",\r\n",
        "=3\r\nabc\r\n",
        "%-1\r\n",
        &deep,
        &digits,
    ] {
        assert_eq!(parse(text.as_bytes(), 1000, 2000), Err(Code::BadResp), "{text:?}");
    }
}

#[test]
fn no_reply_grows_beyond_the_limit() {
    for text in [
        "$101\r\n",
        "*34\r\n",
        "%9223372036854775807\r\n",
        &"+".repeat(101),
        &"*1\r\n:1\r\n:1\r\n".repeat(9)[..1],
    ] {
        let result = parse(text.as_bytes(), 1000, 100);
        assert_eq!(result, if text.len() == 1 { Ok((vec![], 1)) } else { Err(Code::Oversize) }, "{text:?}");
    }
    let many = ":12345678\r\n".repeat(9);
    assert_eq!(parse(format!("*9\r\n{many}").as_bytes(), 7, 102), Err(Code::Oversize));
    assert_eq!(parse(many.as_bytes(), 7, 11).unwrap().0.len(), 9);
}
