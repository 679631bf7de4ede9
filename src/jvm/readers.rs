//! Readers of tasks.

use std::sync::LazyLock;

use jni::Env;
use jni::objects::{JByteArray, JClass, JLongArray, JString};
use jni::sys::{jint, jlong};

use super::boundary::{Result, keep_warnings, text, wrong_argument};
use super::columns::Columns;
use super::handles::Handles;
use super::queries::{close_logs, context, query_of};
use crate::plan::{Task, TaskReader};

static READERS: LazyLock<Handles<Reader>> = LazyLock::new(Handles::new);

struct Reader {
    reader: TaskReader,
    /// The batch whose addresses Java has.
    current: Option<Columns>,
}

impl Reader {
    /// The next batch. The memory of the current one is free for it.
    fn next(&mut self) -> Result<Option<&Columns>> {
        self.current = None;
        let next = self.reader.next_batch();
        keep_warnings(self.reader.take_warnings());
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
    Ok(READERS.add(Reader { reader: TaskReader::new(context(), query, task), current: None }))
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
        let stats = reader.reader.stats();
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

#[expect(clippy::unnecessary_wraps, reason = "as all exported functions")]
pub(super) fn close<'local>(_: &mut Env<'local>, _: JClass<'local>, reader: jlong) -> Result<()> {
    READERS.remove(reader);
    // an executor without a task keeps no file open: retention may have deleted it
    if READERS.is_empty() {
        close_logs();
    }
    Ok(())
}
