//! Copies of logs.

mod changing;
mod continued;
mod crashes;
mod damage;
mod golden;
mod links;
mod metadata;
mod support;
mod unfinished;
