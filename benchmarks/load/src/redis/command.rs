//! Commands in RESP: the number of words, then each word as a bulk string.

/// One whole command.
pub fn pack(words: &[&[u8]]) -> Vec<u8> {
    let mut packed = Vec::new();
    begin(&mut packed, words.len());
    for word in words {
        add(&mut packed, word);
    }
    packed
}

/// Announce a command of so many words.
pub fn begin(packed: &mut Vec<u8>, words: usize) {
    packed.extend(format!("*{words}\r\n").into_bytes());
}

/// The next word; where it begins in `packed`.
pub fn add(packed: &mut Vec<u8>, word: &[u8]) -> usize {
    packed.extend(format!("${}\r\n", word.len()).into_bytes());
    let at = packed.len();
    packed.extend_from_slice(word);
    packed.extend_from_slice(b"\r\n");
    at
}
