//! What members of classic consumer groups exchange through `__consumer_offsets`.

use super::super::schema::Kind::{Array, Bytes, Int32, Struct as StructOf, Text};
use super::super::schema::{Struct, field};

static CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION: Struct = Struct::nested(
    "TopicPartition",
    &[field("topic", Text).since(1), field("partitions", Array(&Int32)).since(1)],
);

pub(in super::super) static CONSUMER_PROTOCOL_SUBSCRIPTION: Struct = Struct::message(
    "ConsumerProtocolSubscription",
    0,
    3,
    &[
        field("topics", Array(&Text)),
        field("userData", Bytes).nullable().default_null(),
        field("ownedPartitions", Array(&StructOf(&CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION))).since(1),
        field("generationId", Int32).since(2).default(-1),
        field("rackId", Text).since(3).nullable().default_null(),
    ],
);

static CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION: Struct =
    Struct::nested("TopicPartition", &[field("topic", Text), field("partitions", Array(&Int32))]);

pub(in super::super) static CONSUMER_PROTOCOL_ASSIGNMENT: Struct = Struct::message(
    "ConsumerProtocolAssignment",
    0,
    3,
    &[
        field("assignedPartitions", Array(&StructOf(&CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION))),
        field("userData", Bytes).nullable().default_null(),
    ],
);
