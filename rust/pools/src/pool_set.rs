//! A set of pools.

/// How many pools there can be.
pub(crate) const POOLS: usize = 1 << 20;
const BITS: usize = u64::BITS as usize;

/// Numbers of pools; the smallest one is found first. All zeros are an empty set.
#[repr(C)]
pub(crate) struct PoolSet {
    lowest: usize, // no word before this one has a bit
    words: [u64; POOLS / BITS],
}

impl PoolSet {
    pub(crate) fn insert(&mut self, pool: usize) {
        let word = pool / BITS;
        self.words[word] |= 1 << (pool % BITS);
        self.lowest = self.lowest.min(word);
    }

    /// Takes out the smallest number below `end`.
    pub(crate) fn take(&mut self, end: usize) -> Option<usize> {
        let last = end.div_ceil(BITS);
        while self.lowest < last {
            let word = &mut self.words[self.lowest];
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(self.lowest * BITS + bit);
            }
            self.lowest += 1;
        }
        None
    }
}
