//! The columns of the last reading by one thread that ended without an error, for the next one in the same
//! thread with the same schema.
//!
//! The first record batches of a reader are otherwise made in new memory. The system provides it page by
//! page, which takes longer than decoding: reading 50,000 records takes three times as long.

use std::cell::RefCell;

use arrow_schema::SchemaRef;

use super::columns::Columns;

/// Columns of larger record batches are not kept. They have about the memory of two.
const MAX_BYTES: usize = 8 << 20;

thread_local! {
    static LAST: RefCell<Option<Columns>> = const { RefCell::new(None) };
}

/// Keeps empty columns for [`take`].
pub(super) fn keep(columns: Columns) {
    if columns.largest() <= MAX_BYTES && columns.rows() == 0 {
        // the columns before are freed after the borrow; while the thread ends nothing is kept
        drop(LAST.try_with(|last| last.replace(Some(columns))));
    }
}

/// The columns that were kept, if they have this schema.
pub(super) fn take(schema: &SchemaRef) -> Option<Columns> {
    LAST.try_with(|last| last.borrow_mut().take_if(|columns| columns.schema() == schema)).ok().flatten()
}
