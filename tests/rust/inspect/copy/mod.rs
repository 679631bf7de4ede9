//! Copies of logs.

mod crashes;
mod damage;
mod golden;
mod support;
