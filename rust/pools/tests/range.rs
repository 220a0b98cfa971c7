//! Blocks are whole and nobody else's, and empty pools go back.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::c_void;
use std::mem;
use std::ptr::NonNull;
use std::slice;

use korvet_pools::{LARGEST, Range};
use proptest::collection;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const POOL: usize = 16 << 10;

/// A block in use: its bytes are all `mark`.
struct Held {
    block: *mut c_void,
    size: usize,
    mark: u8,
}

/// A range and the blocks of it that are in use.
struct World {
    range: NonNull<Range>,
    held: Vec<Held>,
    marks: u8,
}

impl World {
    fn new() -> Self {
        Self { range: Range::reserve().unwrap(), held: Vec::new(), marks: 0 }
    }

    fn range(&mut self) -> &mut Range {
        unsafe { self.range.as_mut() }
    }

    fn allocate(&mut self, size: usize) {
        let block = self.range().allocate(size);
        assert!(!block.is_null() && block.addr().is_multiple_of(16));
        assert!(self.range().has(block) && self.range().size_of(block) >= size);
        self.marks = self.marks.wrapping_add(1);
        let mark = self.marks;
        unsafe { block.write_bytes(mark, size) };
        self.held.push(Held { block, size, mark });
    }

    fn free(&mut self, at: usize) {
        let Held { block, size, mark } = self.held.swap_remove(at);
        let bytes = unsafe { slice::from_raw_parts(block.cast::<u8>(), size) };
        assert!(bytes.iter().all(|&byte| byte == mark), "another block reaches into this one");
        unsafe { self.range().free(block) };
    }

    fn free_all(&mut self) {
        while !self.held.is_empty() {
            self.free(self.held.len() - 1);
        }
    }

    /// How many bytes went back.
    fn give_back(&mut self) -> usize {
        let pools = self.range().take_empty();
        pools.give_back();
        self.range().reuse(pools)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Allocate { size: usize, many: usize },
    Free { at: prop::sample::Index, many: usize },
    GiveBack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..=LARGEST, 1..400_usize).prop_map(|(size, many)| Step::Allocate { size, many }),
        8 => (any::<prop::sample::Index>(), 1..400_usize).prop_map(|(at, many)| Step::Free { at, many }),
        1 => Just(Step::GiveBack),
    ];
    collection::vec(step, 1..60)
}

#[test]
fn blocks_are_nobody_elses_in_any_order() {
    let world = RefCell::new(World::new()); // one for all cases: they leave pools behind in every state
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let play = |steps| {
        let mut world = world.borrow_mut();
        for step in steps {
            match step {
                Step::Allocate { size, many } => (0..many).for_each(|_| world.allocate(size)),
                Step::Free { at, many } => {
                    for _ in 0..many.min(world.held.len()) {
                        let at = at.index(world.held.len());
                        world.free(at);
                    }
                }
                Step::GiveBack => drop(world.give_back()),
            }
        }
        Ok(())
    };
    runner.run(&steps(), play).unwrap();
    world.borrow_mut().free_all();
}

#[test]
fn what_a_flood_took_goes_back_though_one_block_in_a_thousand_stays() {
    let mut world = World::new();
    let before = resident(&world);
    (0..200_000).for_each(|at| world.allocate(1 + at % LARGEST));
    let flood = resident(&world) - before;
    assert!(flood > 48 << 20);
    let (stays, goes) =
        mem::take(&mut world.held).into_iter().enumerate().partition(|(at, _)| at % 1000 == 0);
    world.held = without_places(goes);
    world.free_all();
    world.held = without_places(stays);
    assert!(world.give_back() > flood / 10 * 9);
    assert!(resident(&world) - before < flood / 10);
    world.free_all(); // they are as they were
}

fn without_places(blocks: Vec<(usize, Held)>) -> Vec<Held> {
    blocks.into_iter().map(|(_, held)| held).collect()
}

/// Bytes of the first 128 MiB of the range that are in memory.
fn resident(world: &World) -> usize {
    let mut pages = vec![0; (128 << 20) / 4096];
    let start = world.range.as_ptr().cast();
    assert_eq!(unsafe { libc::mincore(start, 128 << 20, pages.as_mut_ptr()) }, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count() * 4096
}

#[test]
fn what_went_back_is_used_again_and_zero() {
    let mut world = World::new();
    (0..10_000).for_each(|_| world.allocate(100));
    let first: HashSet<_> = world.held.iter().map(|each| each.block.addr() / POOL).collect();
    world.free_all();
    assert!(world.give_back() >= (first.len() - 1) * POOL);
    for _ in 0..10_000 {
        let block = world.range().allocate(100);
        assert!(first.contains(&(block.addr() / POOL)), "a new pool, though there were old ones");
    }
}

#[test]
fn pools_that_are_going_back_are_not_handed_out() {
    let mut world = World::new();
    (0..10_000).for_each(|_| world.allocate(64));
    let last = world.held.iter().map(|each| each.block.addr() / POOL).max().unwrap();
    world.free_all();
    let pools = world.range().take_empty();
    (0..10_000).for_each(|_| world.allocate(64));
    let fresh = world.held.iter().filter(|each| each.block.addr() / POOL > last).count();
    assert!(fresh > 9_000, "all but those of the one pool that stays open");
    pools.give_back();
    world.range().reuse(pools);
    world.free_all(); // none has been cleared
}
