//! The records of `__transaction_state`.

use super::super::schema::Kind::{Array, Int8, Int16, Int32, Int64, Struct as StructOf, Text};
use super::super::schema::{Struct, field};

pub(in super::super) static TRANSACTION_LOG_KEY: Struct =
    Struct::message("TransactionLogKey", 0, 0, &[field("transactionalId", Text)]);

static TRANSACTION_LOG_VALUE_PARTITIONS_SCHEMA: Struct =
    Struct::nested("PartitionsSchema", &[field("topic", Text), field("partitionIds", Array(&Int32))]);

pub(in super::super) static TRANSACTION_LOG_VALUE: Struct = Struct::message(
    "TransactionLogValue",
    0,
    1,
    &[
        field("producerId", Int64),
        field("previousProducerId", Int64).since(1).tag(0).default(-1),
        field("nextProducerId", Int64).since(1).tag(1).default(-1),
        field("producerEpoch", Int16),
        field("nextProducerEpoch", Int16).since(1).tag(3).default(-1),
        field("transactionTimeoutMs", Int32),
        field("transactionStatus", Int8),
        field("transactionPartitions", Array(&StructOf(&TRANSACTION_LOG_VALUE_PARTITIONS_SCHEMA))).nullable(),
        field("transactionLastUpdateTimestampMs", Int64),
        field("transactionStartTimestampMs", Int64),
        field("clientTransactionVersion", Int16).since(1).tag(2),
    ],
)
.flexible(1);
