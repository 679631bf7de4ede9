//! Readers of tasks.

use std::sync::LazyLock;

use jni::Env;
use jni::objects::{JByteArray, JClass, JLongArray, JString};
use jni::sys::{jint, jlong};

use super::boundary::{Result, keep_warnings, text, wrong_argument};
use super::columns::Columns;
use super::handles::Handles;
use super::logs::{LogUser, context};
use super::queries::query_of;
use crate::plan::{Task, TaskReader};

static READERS: LazyLock<Handles<Reader>> = LazyLock::new(Handles::new);

struct Reader {
    /// `None` after the end of the task.
    open: Option<(TaskReader, LogUser)>,
    /// The batch whose addresses Java has.
    current: Option<Columns>,
}

impl Reader {
    /// The next batch. The memory of the current one is free for it.
    fn next(&mut self) -> Result<Option<&Columns>> {
        let (reader, _) =
            self.open.as_mut().ok_or_else(|| wrong_argument("a reader of a task that has ended"))?;
        self.current = None;
        let next = reader.next_batch();
        keep_warnings(reader.take_warnings());
        self.current = next?.map(Columns::new).transpose()?;
        Ok(self.current.as_ref())
    }
}

pub(super) fn open<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
    task: JByteArray<'local>,
) -> Result<jlong> {
    let query = query_of(&text(env, &query)?)?;
    let task = Task::from_bytes(&env.convert_byte_array(&task)?)?;
    let reader = TaskReader::new(context(), query, task);
    Ok(READERS.add(Reader { open: Some((reader, LogUser::new())), current: None }))
}

pub(super) fn next<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    reader: jlong,
    layout: JLongArray<'local>,
) -> Result<jint> {
    READERS.with(reader, |reader| {
        let Some(columns) = reader.next()? else { return Ok(-1) };
        let (expected, found) = (layout.len(env)?, columns.numbers().len());
        if found != expected {
            let found = format!("expected {expected} addresses of columns, found {found}");
            return Err(wrong_argument(&found));
        }
        layout.set_region(env, 0, columns.numbers())?;
        jint::try_from(columns.rows()).map_err(|_| wrong_argument("a batch of more than 2^31 rows"))
    })
}

pub(super) fn memory<'local>(_: &mut Env<'local>, _: JClass<'local>, reader: jlong) -> Result<jlong> {
    READERS.with(reader, |reader| {
        let bytes = reader.current.as_ref().map_or(0, Columns::memory);
        Ok(jlong::try_from(bytes).unwrap_or(jlong::MAX))
    })
}

pub(super) fn metrics<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    reader: jlong,
) -> Result<JLongArray<'local>> {
    READERS.with(reader, |reader| {
        let stats = reader.open.as_ref().map(|(reader, _)| reader.stats()).unwrap_or_default();
        // in the order of `ReadMetrics.ALL`
        let numbers = [
            stats.batches,
            stats.batches_skipped,
            stats.batches_decompressed,
            stats.bytes_read,
            stats.records,
        ];
        let numbers = numbers.map(|number| jlong::try_from(number).unwrap_or(jlong::MAX));
        let array = JLongArray::new(env, numbers.len())?;
        array.set_region(env, 0, &numbers)?;
        Ok(array)
    })
}

/// Closes the files. The memory of the current batch stays.
pub(super) fn finish<'local>(_: &mut Env<'local>, _: JClass<'local>, reader: jlong) -> Result<()> {
    READERS.with(reader, |reader| {
        reader.open = None;
        Ok(())
    })
}

#[expect(clippy::unnecessary_wraps, reason = "as all exported functions")]
pub(super) fn close<'local>(_: &mut Env<'local>, _: JClass<'local>, reader: jlong) -> Result<()> {
    READERS.remove(reader);
    Ok(())
}
