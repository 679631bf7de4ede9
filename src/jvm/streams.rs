//! Streams, in the driver.

use std::sync::LazyLock;

use jni::Env;
use jni::objects::{JByteArray, JClass, JObjectArray, JString};
use jni::sys::jlong;

use super::boundary::{Result, byte_arrays, keep_warnings, strings, text};
use super::handles::Handles;
use super::logs::{LogUser, context};
use super::queries::query_of;
use crate::plan::{PlanError, Stream, Task};

static STREAMS: LazyLock<Handles<(Stream, LogUser)>> = LazyLock::new(Handles::new);

/// Calls a function of a stream, and keeps its warnings.
fn with_stream<T>(handle: jlong, call: impl FnOnce(&mut Stream) -> Result<T, PlanError>) -> Result<T> {
    STREAMS.with(handle, |(stream, _)| {
        let result = call(stream);
        keep_warnings(stream.take_warnings());
        Ok(result?)
    })
}

pub(super) fn open_stream<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<jlong> {
    let query = query_of(&text(env, &query)?)?;
    Ok(STREAMS.add((Stream::new(query, context())?, LogUser::new())))
}

pub(super) fn max_rows_per_trigger<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
) -> Result<jlong> {
    let max_offsets = with_stream(stream, |stream| Ok(stream.max_offsets_per_trigger()))?;
    Ok(max_offsets.map_or(-1, |max_offsets| jlong::try_from(max_offsets).unwrap_or(jlong::MAX)))
}

pub(super) fn initial_offset<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
) -> Result<JString<'local>> {
    Ok(env.new_string(with_stream(stream, Stream::initial_offset)?)?)
}

pub(super) fn latest_offset<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
    start: JString<'local>,
    max_rows: jlong,
) -> Result<JString<'local>> {
    let start = text(env, &start)?;
    // negative: no limit
    let max_offsets = u64::try_from(max_rows).ok();
    let end = with_stream(stream, |stream| stream.latest_offset(&start, max_offsets))?;
    Ok(env.new_string(end)?)
}

pub(super) fn prepare_for_trigger_available_now<'local>(
    _: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
) -> Result<()> {
    with_stream(stream, Stream::prepare_available_now)
}

pub(super) fn report_latest_offset<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
) -> Result<JString<'local>> {
    match with_stream(stream, |stream| Ok(stream.report_latest_offset()))? {
        Some(latest) => Ok(env.new_string(latest)?),
        None => Ok(JString::default()),
    }
}

pub(super) fn stream_metrics<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
    consumed: JString<'local>,
) -> Result<JObjectArray<'local, JString<'local>>> {
    let consumed = if consumed.is_null() { None } else { Some(text(env, &consumed)?) };
    let metrics = with_stream(stream, |stream| stream.metrics(consumed.as_deref()))?;
    let flat: Vec<_> = metrics.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
    strings(env, &flat)
}

pub(super) fn plan_stream<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    stream: jlong,
    start: JString<'local>,
    end: JString<'local>,
) -> Result<JObjectArray<'local, JByteArray<'local>>> {
    let (start, end) = (text(env, &start)?, text(env, &end)?);
    let tasks = with_stream(stream, |stream| stream.plan(&start, &end))?;
    let tasks: Vec<_> = tasks.iter().map(Task::to_bytes).collect();
    byte_arrays(env, &tasks)
}

#[expect(clippy::unnecessary_wraps, reason = "as all exported functions")]
pub(super) fn close_stream<'local>(_: &mut Env<'local>, _: JClass<'local>, stream: jlong) -> Result<()> {
    STREAMS.remove(stream);
    Ok(())
}
