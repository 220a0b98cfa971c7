//! The interpreter's small objects, from an allocator of ours.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use korvet_pools::{LARGEST, Range};
use pyo3::prelude::*;

/// `CPython`'s `PyMemAllocatorEx`, which is the same in every version (<https://docs.python.org/3/c-api/memory.html>).
#[repr(C)]
#[derive(Clone, Copy)]
struct PyMemAllocatorEx {
    ctx: *mut c_void,
    malloc: extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: extern "C" fn(*mut c_void, *mut c_void),
}

const RAW: c_int = 0;
const MEM: c_int = 1;
const OBJ: c_int = 2;

// Outside of the limited API, but exported by every CPython.
unsafe extern "C" {
    fn PyMem_GetAllocator(domain: c_int, allocator: *mut PyMemAllocatorEx);
    fn PyMem_SetAllocator(domain: c_int, allocator: *mut PyMemAllocatorEx);
}

/// What the interpreter hands to each function: small blocks come from `range`, all others from `previous`.
struct Hook {
    range: NonNull<Range>,
    previous: PyMemAllocatorEx,
}

static INSTALLED: AtomicPtr<Hook> = AtomicPtr::new(ptr::null_mut());

impl Hook {
    /// The hook that the interpreter hands back, and its range for one call.
    ///
    /// # Safety
    /// `ctx` is that of an installed hook, and the caller holds the interpreter's lock, so nobody else has the range.
    #[inline]
    unsafe fn of<'a>(ctx: *mut c_void) -> (&'a PyMemAllocatorEx, &'a mut Range) {
        // SAFETY: hooks live as long as the process; the rest is the caller's promise.
        unsafe {
            let hook = &*ctx.cast::<Hook>();
            (&hook.previous, &mut *hook.range.as_ptr())
        }
    }
}

extern "C" fn malloc(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: called by the interpreter, for a domain that asks for its lock.
    let (previous, range) = unsafe { Hook::of(ctx) };
    if size <= LARGEST {
        let block = range.allocate(size);
        if !block.is_null() {
            return block;
        }
    }
    (previous.malloc)(previous.ctx, size)
}

extern "C" fn calloc(ctx: *mut c_void, many: usize, each: usize) -> *mut c_void {
    // SAFETY: as in `malloc`.
    let (previous, range) = unsafe { Hook::of(ctx) };
    if let Some(size) = many.checked_mul(each)
        && size <= LARGEST
    {
        let block = range.allocate(size);
        if !block.is_null() {
            // SAFETY: the block has so many bytes, and is nobody else's.
            unsafe { block.write_bytes(0, size) };
            return block;
        }
    }
    (previous.calloc)(previous.ctx, many, each)
}

extern "C" fn realloc(ctx: *mut c_void, block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        return malloc(ctx, size);
    }
    // SAFETY: as in `malloc`.
    let (previous, range) = unsafe { Hook::of(ctx) };
    if !range.has(block) {
        return (previous.realloc)(previous.ctx, block, size);
    }
    let held = range.size_of(block);
    if size <= held && size > held / 4 * 3 {
        return block;
    }
    let new = malloc(ctx, size);
    if !new.is_null() {
        // SAFETY: both blocks have so many bytes and are different ones; the old one is ours and given up by its owner.
        unsafe {
            new.copy_from_nonoverlapping(block, size.min(held));
            Hook::of(ctx).1.free(block);
        }
    }
    new
}

extern "C" fn free(ctx: *mut c_void, block: *mut c_void) {
    // SAFETY: as in `malloc`.
    let (previous, range) = unsafe { Hook::of(ctx) };
    if range.has(block) {
        // SAFETY: it is in the range, so it came from there.
        unsafe { range.free(block) };
    } else {
        (previous.free)(previous.ctx, block);
    }
}

fn allocator_of(domain: c_int) -> PyMemAllocatorEx {
    let mut found = MaybeUninit::uninit();
    // SAFETY: the function fills it in.
    unsafe {
        PyMem_GetAllocator(domain, found.as_mut_ptr());
        found.assume_init()
    }
}

/// Whether these are functions of the same allocator.
fn same(one: &PyMemAllocatorEx, other: &PyMemAllocatorEx) -> bool {
    one.ctx == other.ctx && ptr::fn_addr_eq(one.malloc, other.malloc)
}

/// Allocate the interpreter's objects of up to 512 bytes from pools that `give_back_small_objects` can give back.
///
/// False, and nothing changes, if somebody chose another allocator than the interpreter's (PYTHONMALLOC, tracemalloc),
/// if this process may not take 16 GiB of addresses (`ulimit -v`), or if the system's pages are larger than 16 KiB.
#[pyfunction]
pub(crate) fn allocate_small_objects(_py: Python<'_>) -> bool {
    let (raw, mem, obj) = (allocator_of(RAW), allocator_of(MEM), allocator_of(OBJ));
    if !same(&mem, &obj) || same(&raw, &obj) || !INSTALLED.load(Ordering::Acquire).is_null() {
        return false;
    }
    let Some(range) = Range::reserve() else { return false };
    let hook = Box::into_raw(Box::new(Hook { range, previous: obj }));
    let mut ours = PyMemAllocatorEx { ctx: hook.cast(), malloc, calloc, realloc, free };
    for domain in [MEM, OBJ] {
        // SAFETY: the interpreter's lock is held; blocks of before are told by their addresses.
        unsafe { PyMem_SetAllocator(domain, &raw mut ours) };
    }
    INSTALLED.store(hook, Ordering::Release);
    true
}

/// Give the memory of all empty pools back to the system; how many bytes that was. Others run meanwhile.
#[pyfunction]
pub(crate) fn give_back_small_objects(py: Python<'_>) -> usize {
    let Some(hook) = NonNull::new(INSTALLED.load(Ordering::Acquire)) else { return 0 };
    // SAFETY: an installed hook lives on, and its range is this thread's while it holds the interpreter's lock.
    let pools = unsafe { Hook::of(hook.as_ptr().cast()).1 }.take_empty();
    let pools = py.detach(move || {
        pools.give_back();
        pools
    });
    // SAFETY: as above.
    unsafe { Hook::of(hook.as_ptr().cast()).1 }.reuse(pools)
}
