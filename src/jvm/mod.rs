//! The native functions of the Java class `io.cordwood.spark.Core`, for Spark's data source in Java
//! (`src/jvm/java`).
//!
//! Like [`crate::plan`], whose functions they are, they know nothing of Spark. `Core` documents them. An
//! object is a number in Java, a handle, which is not an address: a wrong one is an error.

#![expect(clippy::needless_pass_by_value, reason = "the macro that exports the functions passes values")]

mod boundary;
mod columns;
mod exports;
mod handles;
mod logs;
mod queries;
mod readers;
mod streams;
