//! Options and queries: checks, plans and estimates.

use jni::Env;
use jni::objects::{JBooleanArray, JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::jboolean;

use super::boundary::{self, Result, byte_arrays, keep_warnings, strings, text, texts};
use super::logs::{LogUser, context};
use crate::plan::{Context, PlanError, Query, SourceOptions, Task, Warning};

/// Calls a function with a context, and keeps its warnings.
fn with_context<T>(call: impl FnOnce(&mut Context) -> Result<T, PlanError>) -> Result<T> {
    let mut context = context();
    let result = call(&mut context);
    keep_warnings(context.warnings);
    Ok(result?)
}

/// Reads a query from its JSON. There are no warnings: they were logged when the options and the schema were
/// checked.
pub(super) fn query_of(json: &str) -> Result<Query> {
    Ok(Query::from_json(json, &mut Vec::new())?)
}

/// Checks options, which are names and texts in turn, together with the paths.
fn options_of(names_and_texts: &[String], warnings: &mut Vec<Warning>) -> Result<SourceOptions> {
    let pairs = names_and_texts.chunks_exact(2).filter_map(|pair| match pair {
        [name, text] => Some((name.as_str(), text.as_str())),
        _ => None,
    });
    let options = SourceOptions::from_texts(pairs, warnings)?;
    with_context(|context| context.check(&options))?;
    Ok(options)
}

pub(super) fn version<'local>(env: &mut Env<'local>, _: JClass<'local>) -> Result<JString<'local>> {
    Ok(env.new_string(env!("CARGO_PKG_VERSION"))?)
}

pub(super) fn schema<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    options: JObjectArray<'local, JString<'local>>,
) -> Result<JString<'local>> {
    // Spark checks the schema afterwards, which logs them
    let options = options_of(&texts(env, &options)?, &mut Vec::new())?;
    Ok(env.new_string(Query::new(options, None)?.schema_json())?)
}

pub(super) fn check_schema<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    options: JObjectArray<'local, JString<'local>>,
    schema: JString<'local>,
) -> Result<()> {
    let mut warnings = Vec::new();
    let options = options_of(&texts(env, &options)?, &mut warnings);
    keep_warnings(warnings);
    let options = options?;
    Query::new(options, Some(&text(env, &schema)?))?;
    Ok(())
}

pub(super) fn exact_filters<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<JBooleanArray<'local>> {
    let exact: Vec<jboolean> = query_of(&text(env, &query)?)?.exact_filters();
    let array = JBooleanArray::new(env, exact.len())?;
    array.set_region(env, 0, &exact)?;
    Ok(array)
}

pub(super) fn can_aggregate<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<jboolean> {
    Ok(query_of(&text(env, &query)?)?.can_aggregate())
}

pub(super) fn statistics<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<JLongArray<'local>> {
    let query = query_of(&text(env, &query)?)?;
    // the plan of the query itself reports what is wrong
    let estimate = context().estimate(&query).unwrap_or_default();
    let known = |number: Option<u64>| number.and_then(|number| number.try_into().ok()).unwrap_or(-1);
    let array = JLongArray::new(env, 2)?;
    array.set_region(env, 0, &[known(estimate.bytes), known(estimate.rows)])?;
    Ok(array)
}

pub(super) fn plan<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<JObjectArray<'local, JByteArray<'local>>> {
    let query = query_of(&text(env, &query)?)?;
    let _user = LogUser::new();
    let (_, tasks) = with_context(|context| context.plan(&query))?;
    let tasks: Vec<_> = tasks.iter().map(Task::to_bytes).collect();
    byte_arrays(env, &tasks)
}

pub(super) fn describe<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
    query: JString<'local>,
) -> Result<JString<'local>> {
    let query = query_of(&text(env, &query)?)?;
    Ok(env.new_string(query.to_string())?)
}

pub(super) fn take_warnings<'local>(
    env: &mut Env<'local>,
    _: JClass<'local>,
) -> Result<JObjectArray<'local, JString<'local>>> {
    strings(env, &boundary::take_warnings())
}
