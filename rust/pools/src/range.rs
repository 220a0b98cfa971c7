//! The range of addresses and its pools.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use crate::pool_set::{POOLS, PoolSet};

/// Bytes of the largest block.
pub const LARGEST: usize = 512;
const STEP_BITS: usize = 4; // blocks have multiples of 16 bytes, and are aligned to as many
const SIZES: usize = LARGEST >> STEP_BITS;
const POOL_BITS: usize = 14;
const POOL: usize = 1 << POOL_BITS;
const RANGE: usize = POOLS << POOL_BITS; // 16 GiB of addresses, no memory: pages that nobody wrote to cost nothing
const NO_POOL: u32 = 0; // the range begins with this table, so its first pool is never used

/// The head of a pool.
#[repr(C, align(32))]
struct Pool {
    free: *mut Block, // given back; null: all blocks are in use
    next: u32,        // in the list of the pools of a size that have a free block
    previous: u32,
    used: u16,   // blocks
    carved: u16, // blocks that have been used once: the rest of the pool was never written to
    size: u16,   // bytes of a block
}

/// A free block.
struct Block {
    next: *mut Block,
}

/// Memory for blocks of up to `LARGEST` bytes; it lies at the start of its own range of addresses.
///
/// A new mapping is a valid one: all zeros.
#[repr(C)]
pub struct Range {
    open: [u32; SIZES], // by size: the first pool that has a free block
    fresh: usize,       // pools from here on were never used
    empty: PoolSet,     // with pages
    given_back: PoolSet,
    pools: [Pool; POOLS],
}

impl Range {
    /// None if the process may not take as many addresses, or if no pool could go back: the system's pages are larger.
    #[must_use]
    pub fn reserve() -> Option<NonNull<Self>> {
        if addresses_are_limited() || page_size() > POOL {
            return None;
        }
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a mapping where the kernel likes it touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), RANGE + POOL, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start.map_addr(|at| at.next_multiple_of(POOL)).cast::<Self>();
        // SAFETY: the mapping is larger than a `Range` by far. A huge page could not go back in parts.
        unsafe {
            libc::madvise(start.cast(), RANGE, libc::MADV_NOHUGEPAGE);
            (*start).fresh = size_of::<Self>().div_ceil(POOL);
        }
        NonNull::new(start)
    }

    /// Whether the block lies in this range.
    #[inline]
    #[must_use]
    pub fn has(&self, block: *const c_void) -> bool {
        block.addr().wrapping_sub(ptr::from_ref(self).addr()) < RANGE
    }

    /// A block of at least `size` bytes, at most `LARGEST`; null if the range is full.
    #[inline]
    pub fn allocate(&mut self, size: usize) -> *mut c_void {
        let class = size.saturating_sub(1) >> STEP_BITS;
        let mut at = self.open[class];
        if at == NO_POOL {
            at = self.open_pool(class);
            if at == NO_POOL {
                return ptr::null_mut();
            }
        }
        let pool = &mut self.pools[at as usize];
        let block = pool.free;
        pool.used += 1;
        // SAFETY: a pool in the list has a free block, and this is its first one.
        pool.free = unsafe { (*block).next };
        if pool.free.is_null() {
            self.carve(at);
        }
        block.cast()
    }

    /// Takes back a block of this range.
    ///
    /// # Safety
    /// The block came from `allocate` of this range, and nobody uses it any more.
    #[inline]
    pub unsafe fn free(&mut self, block: *mut c_void) {
        let at = self.pool_of(block);
        let pool = &mut self.pools[at as usize];
        let block = block.cast::<Block>();
        let first = pool.free;
        // SAFETY: the block is as large as a pointer, aligned to 16 bytes and nobody's.
        unsafe { (*block).next = first };
        pool.free = block;
        pool.used -= 1;
        if pool.used == 0 {
            self.close_pool(at);
        } else if first.is_null() {
            self.link(at);
        }
    }

    /// How many bytes the block of this range has.
    #[inline]
    #[must_use]
    pub fn size_of(&self, block: *const c_void) -> usize {
        usize::from(self.pools[self.pool_of(block) as usize].size)
    }

    #[inline]
    fn pool_of(&self, block: *const c_void) -> u32 {
        ((block.addr() - ptr::from_ref(self).addr()) >> POOL_BITS) as u32
    }

    fn start_of(&mut self, pool: u32) -> *mut c_void {
        ptr::from_mut(self).cast::<c_void>().wrapping_byte_add((pool as usize) << POOL_BITS)
    }

    #[cold]
    fn open_pool(&mut self, class: usize) -> u32 {
        let Some(at) =
            self.empty.take(self.fresh).or_else(|| self.given_back.take(self.fresh)).or_else(|| {
                let at = self.fresh;
                self.fresh += usize::from(at < POOLS);
                (at < POOLS).then_some(at)
            })
        else {
            return NO_POOL;
        };
        let at = at as u32;
        let size = (class as u16 + 1) << STEP_BITS;
        self.pools[at as usize] =
            Pool { free: ptr::null_mut(), next: NO_POOL, previous: NO_POOL, used: 0, carved: 0, size };
        self.link(at);
        self.carve(at);
        at
    }

    /// The next free block of a pool that has no other, or the pool is in no list any more.
    fn carve(&mut self, at: u32) {
        let start = self.start_of(at);
        let pool = &mut self.pools[at as usize];
        let position = usize::from(pool.carved) * usize::from(pool.size);
        if position + usize::from(pool.size) > POOL {
            return self.unlink(at);
        }
        pool.carved += 1;
        let block = start.wrapping_byte_add(position).cast::<Block>();
        // SAFETY: the block lies in the pool, and was in nobody's use.
        unsafe { (*block).next = ptr::null_mut() };
        pool.free = block;
    }

    fn link(&mut self, at: u32) {
        let class = self.class_of(at);
        let next = self.open[class];
        let pool = &mut self.pools[at as usize];
        (pool.previous, pool.next) = (NO_POOL, next);
        self.pools[next as usize].previous = at;
        self.open[class] = at;
    }

    fn unlink(&mut self, at: u32) {
        let class = self.class_of(at);
        let Pool { next, previous, .. } = self.pools[at as usize];
        self.pools[next as usize].previous = previous;
        if previous == NO_POOL {
            self.open[class] = next;
        } else {
            self.pools[previous as usize].next = next;
        }
    }

    fn class_of(&self, at: u32) -> usize {
        (usize::from(self.pools[at as usize].size) >> STEP_BITS) - 1
    }

    /// A pool without blocks in use; the last one of a size stays open.
    fn close_pool(&mut self, at: u32) {
        let pool = &self.pools[at as usize];
        if pool.next == NO_POOL && pool.previous == NO_POOL {
            return;
        }
        self.unlink(at);
        self.empty.insert(at as usize);
    }

    /// Takes all empty pools out of use; `give_back` is to be called next, and then `reuse`.
    pub fn take_empty(&mut self) -> EmptyPools {
        let mut runs: Vec<Run> = Vec::new();
        while let Some(pool) = self.empty.take(self.fresh) {
            match runs.last_mut() {
                Some(run) if run.end == pool => run.end += 1,
                _ => runs.push(pool..pool + 1),
            }
        }
        EmptyPools { range: ptr::from_mut(self).cast(), runs }
    }

    /// Lets pools be used again whose memory has gone back; how many bytes that was.
    pub fn reuse(&mut self, pools: EmptyPools) -> usize {
        let many = pools.runs.into_iter().flatten().map(|pool| self.given_back.insert(pool)).count();
        many << POOL_BITS
    }
}

fn page_size() -> usize {
    // SAFETY: it reads a constant.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Whether the addresses that this range takes would lack elsewhere (`ulimit -v`).
fn addresses_are_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it fills in the struct.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) != 0 || limit.rlim_cur != libc::RLIM_INFINITY }
}

/// Pools side by side.
type Run = std::ops::Range<usize>;

/// Pools that nobody uses.
pub struct EmptyPools {
    range: *mut c_void,
    runs: Vec<Run>,
}

// SAFETY: nothing but the memory of these pools is touched, and that is nobody else's.
unsafe impl Send for EmptyPools {}

impl EmptyPools {
    /// Gives their memory back to the system; it is all zeros when it is used next.
    pub fn give_back(&self) {
        for run in &self.runs {
            let start = self.range.wrapping_byte_add(run.start << POOL_BITS);
            // SAFETY: nothing is in these pools. If it fails, the pages stay, and are used again as they are.
            unsafe { libc::madvise(start, run.len() << POOL_BITS, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_range_has_no_more_blocks_until_some_are_free() {
        let mut range = Range::reserve().unwrap();
        // SAFETY: nobody else has it.
        let range = unsafe { range.as_mut() };
        range.fresh = POOLS - 1;
        let blocks: Vec<_> = (0..POOL / 32).map(|_| range.allocate(32)).collect();
        assert!(blocks.iter().all(|block| !block.is_null() && range.has(*block)));
        assert!(range.allocate(32).is_null());
        assert!(range.allocate(64).is_null());
        // SAFETY: it came from this range.
        unsafe { range.free(blocks[7]) };
        assert_eq!(range.allocate(32), blocks[7]);
    }
}
