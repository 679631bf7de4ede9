//! Copies of logs.

mod changing;
mod continued;
mod crashes;
mod damage;
mod golden;
mod links;
mod support;
mod unfinished;
