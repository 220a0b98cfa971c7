//! The two structs of Arrow's C data interface: <https://arrow.apache.org/docs/format/CDataInterface.html>.
//!
//! Whoever holds one releases it, once, by its own callback; one whose callback is null was released or moved away.

use std::ffi::{CStr, c_char, c_void};

/// The names of the interface's capsules.
pub(super) const SCHEMA: &CStr = c"arrow_schema";
pub(super) const ARRAY: &CStr = c"arrow_array";

/// The flag of a field that may hold nulls.
pub(super) const NULLABLE: i64 = 2;

/// A type: a field with its name.
#[repr(C)]
pub(super) struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    pub(super) private_data: *mut c_void,
}

/// An array's buffers.
#[repr(C)]
pub(super) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(super) private_data: *mut c_void,
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released yet, and nobody uses it after this.
            unsafe { release(self) };
        }
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released yet, and nobody uses it after this.
            unsafe { release(self) };
        }
    }
}

// SAFETY: the interface lets a struct be used and released on any thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
