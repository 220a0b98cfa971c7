use crate::stream::json::members;

/// Names and values, null as `None`.
fn read(text: &str) -> Option<Vec<(String, Option<String>)>> {
    let own = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let found = members(text.as_bytes())?;
    Some(found.iter().map(|(name, value)| (own(name), value.as_ref().map(|value| own(value)))).collect())
}

fn pairs(pairs: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect()
}

#[test]
fn objects_are_headers() {
    assert_eq!(read("{}"), Some(pairs(&[])));
    assert_eq!(
        read(r#"{"source":"web","version":"1.0"}"#),
        Some(pairs(&[("source", Some("web")), ("version", Some("1.0"))]))
    );
    assert_eq!(
        read(
            " {\t\"a\" :\r\n1.50 , \"a\":null,\"\": [1, {\"x\":[true,false,null,\"\\\"\"]}] , \"n\":-0e+7} \n"
        ),
        Some(pairs(&[
            ("a", Some("1.50")),
            ("a", None),
            ("", Some("[1, {\"x\":[true,false,null,\"\\\"\"]}]")),
            ("n", Some("-0e+7"))
        ]))
    );
    assert_eq!(
        read(r#"{"\"\\\/\b\f\n\r\t\u0041\u00e9":"\ud83d\ude00é"}"#),
        Some(pairs(&[("\"\\/\u{8}\u{c}\n\r\tAé", Some("😀é"))]))
    );
    // Half a character matters only where the text is read.
    assert_eq!(read(r#"{"a":["\ud800"]}"#), Some(pairs(&[("a", Some(r#"["\ud800"]"#))])));
}

#[test]
fn what_is_no_object_is_nothing() {
    for text in [
        "",
        "1",
        "null",
        "[]",
        "\"a\"",
        "{",
        "{}x",
        "{}{}",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":NaN}",
        "{\"a\":nul}",
        "{\"a\":True}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u00g0\"}",
        "{\"a\":\"\\u00\"}",
        "{\"a\":\"}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":{\"b\"}}",
        "{\"a\":[}",
        "{'a':1}",
        "\u{feff}{}",
        r#"{"\ud800":1}"#,
        r#"{"a":"\udc00"}"#,
        r#"{"a":"\ud800\u0041"}"#,
        r#"{"a":"\ud800x"}"#,
        r#"{"a":"\"#,
    ] {
        assert_eq!(read(text), None, "{text:?}");
    }
    assert_eq!(members(b"{\"a\":\"\xff\"}"), None);
}

#[test]
fn nesting_has_an_end() {
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(&nested(31)).is_some());
    assert!(read(&nested(32)).is_none());
    assert!(read(&format!("{{\"a\":{}", "[".repeat(1 << 20))).is_none());
}
