//! The Python face of `korvet_codec`: conversions only, one call per batch or more.

// Python's arguments arrive as values of their own.
#![allow(clippy::needless_pass_by_value)]

mod arrow;
mod batch;
mod buffer;
mod columns;
mod commands;
mod error;
mod flush;
mod frames;
mod hint;
mod legacy;
mod mapping;
mod message_cells;
mod names;
mod resp;
mod rows;
mod schema;
mod small_objects;
mod stream;
mod text;

/// The native contract: bytes in, bytes and numbers out, one call per batch or more.
///
/// Every failure raises `korvet_fast.errors.CodecError(code, message)`; the codes are listed in rust/codec/src/error.rs.
/// A wrong type of argument is a `TypeError`. Buffers may be any object with the buffer protocol, C-contiguous, and must
/// not be written to during the call.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrow::{ArrowColumns, ArrowRecords, to_arrow};
    #[pymodule_export]
    use crate::batch::{
        Batch, assign_offsets, batch_headers, find_time, recompress, slice_batches, validate_batch,
    };
    #[pymodule_export]
    use crate::buffer::{Column, reserve};
    #[pymodule_export]
    use crate::columns::{build_batch, to_columns};
    #[pymodule_export]
    use crate::commands::{encode_command_parts, encode_commands};
    #[pymodule_export]
    use crate::flush::Flusher;
    #[pymodule_export]
    use crate::frames::Frames;
    #[pymodule_export]
    use crate::legacy::{down_convert, to_messages, to_values, up_convert, whole_messages};
    #[pymodule_export]
    use crate::mapping::FileMapping;
    #[pymodule_export]
    use crate::message_cells::MessageCells;
    #[pymodule_export]
    use crate::names::match_names;
    #[pymodule_export]
    use crate::resp::{Replies, ReplyError, parse_replies, parse_reply};
    #[pymodule_export]
    use crate::rows::{ColumnRows, RowRun, build_rows, row_places};
    #[pymodule_export]
    use crate::schema::Schema;
    #[pymodule_export]
    use crate::small_objects::{allocate_small_objects, give_back_small_objects};
    #[pymodule_export]
    use crate::stream::{decode_batches, decode_records, encode_append, encode_append_batches};
    #[pymodule_export]
    use crate::text::{Lines, ProduceRun, write_messages};
}
