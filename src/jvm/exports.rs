//! The exported functions: the native methods of `Core.java`. The JVM finds them by their names, which
//! contain the types of the arguments. The macros check that each function has the types of its signature;
//! `Core.java` must have the same result types.

use jni::native_method;

use super::boundary::Throw;
use super::{queries, readers, streams};

/// Exports a function of a module.
macro_rules! export {
    ($module:ident :: $name:ident ($($arguments:tt)*) $(-> $($result:tt)+)?) => {
        const _: jni::NativeMethod = native_method! {
            java_type = "io.cordwood.spark.Core",
            extern static fn $name($($arguments)*) $(-> $($result)+)?,
            fn = $module::$name,
            error_policy = Throw,
        };
    };
}

export!(queries::version() -> JString);
export!(queries::schema(options: JString[]) -> JString);
export!(queries::check_schema(options: JString[], schema: JString));
export!(queries::exact_filters(query: JString) -> jboolean[]);
export!(queries::can_aggregate(query: JString) -> jboolean);
export!(queries::statistics(query: JString) -> jlong[]);
export!(queries::plan(query: JString) -> jbyte[][]);
export!(queries::describe(query: JString) -> JString);
export!(queries::take_warnings() -> JString[]);

export!(readers::open(query: JString, task: jbyte[]) -> jlong);
export!(readers::next(reader: jlong, layout: jlong[]) -> jint);
export!(readers::memory(reader: jlong) -> jlong);
export!(readers::metrics(reader: jlong) -> jlong[]);
export!(readers::finish(reader: jlong));
export!(readers::close(reader: jlong));

export!(streams::open_stream(query: JString) -> jlong);
export!(streams::max_rows_per_trigger(stream: jlong) -> jlong);
export!(streams::initial_offset(stream: jlong) -> JString);
export!(streams::latest_offset(stream: jlong, start: JString, max_rows: jlong) -> JString);
export!(streams::prepare_for_trigger_available_now(stream: jlong));
export!(streams::report_latest_offset(stream: jlong) -> JString);
export!(streams::stream_metrics(stream: jlong, consumed: JString) -> JString[]);
export!(streams::plan_stream(stream: jlong, start: JString, end: JString) -> jbyte[][]);
export!(streams::close_stream(stream: jlong));
