//! The plan of a load is what Kafka 4.3.1 does: field by field on every partition of the corpus, intact and
//! damaged, after a clean and after an unclean shutdown.

mod table;
