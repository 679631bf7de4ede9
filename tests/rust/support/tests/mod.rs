//! Tests of the test support: the builder of batches and the naive reader, compared with Kafka's vectors and
//! the corpus.

mod builder_and_oracle;
mod builder_on_golden;
mod oracle_on_golden;
mod vectors;
