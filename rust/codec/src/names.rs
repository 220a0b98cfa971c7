//! Names that a regular expression fits. Clients send patterns, so what a pattern may cost is bounded, and one that would
//! cost more is refused.

use std::collections::HashMap;

use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, State, WhichCaptures};
use regex_automata::util::{start, syntax};
use regex_syntax::hir::{Hir, Look};

use crate::{Code, Error, Result};

/// Bytes of a pattern: some hundred names one after another.
const LONGEST: usize = 16 * 1024;
/// Bytes that a compiled pattern may take.
const PROGRAM: usize = 512 * 1024;
/// Parentheses inside of parentheses.
const DEPTH: u32 = 50;
/// Bytes of the states that were met; when they are full they are forgotten.
const STATES: usize = 2 << 20;
/// Steps of one or two nanoseconds that all names together may take to make states. Going from one state that is there
/// to the next costs little, whatever the pattern.
const STEPS: usize = 6_000_000;
/// Steps of a state however small it is: it is compared with the others, and kept.
const STATE: usize = 200;
/// Steps of each place in the pattern that is looked at to make a state.
const PLACE: usize = 4;

/// The `names` that `pattern` fits from end to end. Its classes, such as `\w`, are of ASCII.
///
/// `BAD_PATTERN` for one that cannot be read (back-references and look-around are none), has more than 16 KiB, or more
/// than 512 KiB compiled, or takes more than 6 million steps on these names.
pub fn matching<T: AsRef<str>>(pattern: &str, names: Vec<T>) -> Result<Vec<T>> {
    let mut pattern = Pattern::new(pattern)?;
    let mut found = Vec::new();
    for name in names {
        if pattern.fits(name.as_ref().as_bytes())? {
            found.push(name);
        }
    }
    Ok(found)
}

/// A pattern as an automaton whose states are made when they are first met, and kept.
struct Pattern {
    automaton: DFA,
    met: Cache,
    /// The memory that states take in `met`: at least a byte for each place that they keep.
    sizes: HashMap<LazyStateID, usize>,
    largest: usize,
    /// Places that may be passed behind any byte, and that no state keeps.
    passed: usize,
    left: usize,
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self> {
        if pattern.len() > LONGEST {
            return bad(format!("it has more than {LONGEST} bytes"));
        }
        let language = syntax::Config::new().unicode(false).utf8(false).nest_limit(DEPTH);
        let tree = syntax::parse_with(pattern, &language).or_else(bad)?;
        let program = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(PROGRAM))
            .which_captures(WhichCaptures::None);
        let program = thompson::Compiler::new()
            .configure(program)
            .build_from_hir(&Hir::concat(vec![Hir::look(Look::Start), tree, Hir::look(Look::End)]))
            .or_else(bad)?;
        let passed = count_passed(&program);
        let automaton = Builder::new()
            .configure(Config::new().cache_capacity(STATES))
            .build_from_nfa(program)
            .or_else(bad)?;
        let met = automaton.create_cache();
        let (sizes, largest) = (HashMap::new(), met.memory_usage());
        Ok(Self { automaton, met, sizes, largest, passed, left: STEPS })
    }

    fn fits(&mut self, name: &[u8]) -> Result<bool> {
        let mut state = self.start()?;
        for byte in name {
            let mut next = self.automaton.next_state_untagged(&self.met, state, *byte);
            if next.is_unknown() {
                next = self.make(state, *byte)?;
            }
            if next.is_tagged() {
                return if next.is_dead() { Ok(false) } else { bad("it cannot be decided byte by byte") };
            }
            state = next;
        }
        self.automaton.next_eoi_state(&mut self.met, state).map(|last| last.is_match()).or_else(bad)
    }

    fn start(&mut self) -> Result<LazyStateID> {
        let from = start::Config::new().anchored(Anchored::Yes);
        self.measure(|automaton, met| automaton.start_state(met, &from).or_else(bad))
    }

    /// The state behind `state`, which is not there yet.
    #[cold]
    fn make(&mut self, state: LazyStateID, byte: u8) -> Result<LazyStateID> {
        let size = self.sizes.get(&state).copied().unwrap_or(self.largest);
        match self.left.checked_sub(STATE + PLACE * (size + self.passed)) {
            Some(left) => self.left = left,
            None => return bad("it takes too many steps on the names that there are"),
        }
        self.measure(|automaton, met| automaton.next_state(met, state, byte).or_else(bad))
    }

    /// The state that `find` gives; the size of a new one is noted.
    fn measure(&mut self, find: impl FnOnce(&DFA, &mut Cache) -> Result<LazyStateID>) -> Result<LazyStateID> {
        let (before, cleared) = (self.met.memory_usage(), self.met.clear_count());
        let state = find(&self.automaton, &mut self.met)?;
        let size = self.met.memory_usage().saturating_sub(before);
        if self.met.clear_count() > cleared {
            self.sizes.clear();
        } else if size > 0 {
            self.sizes.insert(state, size);
            self.largest = self.largest.max(size);
        }
        Ok(state)
    }
}

/// Ways between places of the program that take no byte and begin behind one: what making a state may have to follow,
/// and no state shows.
fn count_passed(program: &NFA) -> usize {
    let mut ahead = Vec::new();
    for place in program.states() {
        match place {
            State::ByteRange { trans } => ahead.push(trans.next),
            State::Sparse(some) => ahead.extend(some.transitions.iter().map(|way| way.next)),
            State::Dense(all) => ahead.extend(all.transitions.iter()),
            _ => (),
        }
    }
    let mut seen = vec![false; program.states().len()];
    let mut passed = 0;
    while let Some(place) = ahead.pop() {
        if std::mem::replace(&mut seen[place.as_usize()], true) {
            continue;
        }
        let known = ahead.len();
        match program.state(place) {
            State::Union { alternates } => ahead.extend(alternates.iter()),
            State::BinaryUnion { alt1, alt2 } => ahead.extend([alt1, alt2]),
            State::Look { next, .. } | State::Capture { next, .. } => ahead.push(*next),
            _ => (),
        }
        passed += ahead.len() - known;
    }
    passed
}

#[expect(clippy::needless_pass_by_value, reason = "so that it can stand behind `or_else`")]
fn bad<T>(why: impl ToString) -> Result<T> {
    Error::fail(Code::BadPattern, why.to_string())
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
    fn a_comment_does_not_reach_what_is_put_around_a_pattern() {
        assert_eq!(found("(?x) orders # all").unwrap(), ["orders"]);
        assert_eq!(found("(?m)^orders$").unwrap(), ["orders"]);
    }

    #[test]
    fn a_pattern_that_others_take_ages_for() {
        let name = "a".repeat(20_000) + "b";
        assert!(matching("(a*)*(a|aa)+(a+)+c", vec![name]).unwrap().is_empty());
    }

    /// Names of `length` letters, a and b, no two of them alike in their bits.
    fn mixed(count: usize, length: usize) -> Vec<String> {
        let mut seed = 1_u64;
        let mut letter = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 63 == 0 { 'a' } else { 'b' }
        };
        (0..count).map(|_| (0..length).map(|_| letter()).collect()).collect()
    }

    #[test]
    fn a_pattern_that_takes_too_many_steps_is_refused() {
        let names = mixed(20_000, 25);
        for pattern in [
            "(?:a|b)*a(?:a|b){16}",                       // a state for each of 2^16 pasts
            "(?:(?:a?){2000}[ab])*a[ab]{12}",             // and thousands of places kept in each
            r"(?:(?:[^\x00-\xff]?){2000}[ab])*a[ab]{12}", // or passed
        ] {
            let refusal = matching(pattern, names.clone()).unwrap_err();
            assert_eq!(refusal.code, Code::BadPattern, "{pattern}");
            assert!(refusal.message.contains("steps"), "{refusal}");
        }
        let expected: Vec<_> = names.iter().filter(|name| name.as_bytes()[19] == b'a').cloned().collect();
        assert_eq!(matching("(?:a|b)*a(?:a|b){5}", names).unwrap(), expected);
    }

    #[test]
    fn what_honest_patterns_need_is_allowed() {
        let names: Vec<_> = (0..20_000).map(|at| format!("orders.region-{}.table-{at:05}", at % 7)).collect();
        let many = names[..300].join("|");
        for (pattern, count) in [(&many[..], 300), (r"orders\.region-[0-2]\..*", 8572), (".*", 20_000)] {
            assert_eq!(matching(pattern, names.clone()).unwrap().len(), count, "{}", &pattern[..2]);
        }
    }

    #[test]
    fn forgotten_states_are_made_again() {
        let mut pattern = Pattern::new("(?:a|b)*a(?:a|b){14}").unwrap();
        pattern.left = usize::MAX;
        for name in mixed(40_000, 25) {
            assert_eq!(pattern.fits(name.as_bytes()), Ok(name.as_bytes()[10] == b'a'));
        }
        assert!(pattern.met.clear_count() > 0);
    }
}
