//! Names that a regular expression fits. The time it takes grows with the names' length only, whatever the pattern:
//! clients send patterns, and the broker's loop waits for the answer.

use regex::bytes::{Regex, RegexBuilder};

use crate::{Code, Error, Result};

/// Bytes that a compiled pattern may take.
const PROGRAM: usize = 1 << 20;
/// Parentheses inside of parentheses.
const DEPTH: u32 = 50;

/// Those of `names` that `pattern` fits from end to end. Its classes, such as `\w`, are of ASCII.
/// `BAD_PATTERN` for one that cannot be read (back-references and look-around are none), or is too large.
pub fn matching<T: AsRef<str>>(pattern: &str, names: Vec<T>) -> Result<Vec<T>> {
    compile(pattern)?; // on its own, so that `a)|(b` is not made whole by what is put around it
    let whole = compile(&format!(r"\A(?:{pattern})\z"))?;
    Ok(names.into_iter().filter(|name| whole.is_match(name.as_ref().as_bytes())).collect())
}

fn compile(pattern: &str) -> Result<Regex> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(PROGRAM)
        .nest_limit(DEPTH)
        .build()
        .map_err(|error| Error::new(Code::BadPattern, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str) -> Result<Vec<&'static str>> {
        matching(pattern, vec!["orders", "orders.eu", "ORDERS", "order-1", "x"])
    }

    #[test]
    fn a_pattern_fits_whole_names() {
        assert_eq!(found("orders").unwrap(), ["orders"]);
        assert_eq!(found(r"orders(\..*)?").unwrap(), ["orders", "orders.eu"]);
        assert_eq!(found("(?i)orders").unwrap(), ["orders", "ORDERS"]);
        assert_eq!(found(r"\w+").unwrap(), ["orders", "ORDERS", "x"]);
        assert_eq!(found("x|orders").unwrap(), ["orders", "x"]);
        assert_eq!(found("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_bad_pattern_is_refused() {
        for pattern in
            ["(", "a)|(b", r"(a)\1", "(?=a)", "a{1000}{1000}", &"(".repeat(1000), &"a".repeat(1 << 21)]
        {
            assert_eq!(
                found(pattern).unwrap_err().code,
                Code::BadPattern,
                "{}",
                &pattern[..pattern.len().min(40)]
            );
        }
    }

    #[test]
    fn a_pattern_that_others_take_ages_for() {
        let name = "a".repeat(20_000) + "b";
        assert!(matching("(a*)*(a|aa)+(a+)+c", vec![name]).unwrap().is_empty());
    }
}
