//! The members of groups.

use super::super::message::{Message, Value};
use super::super::readable::Readable;
use super::super::schema::Kind::{Array, Int32, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};
use super::super::schemas::consumer_protocol::{
    CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION,
};

static ASSIGNED: Struct = Struct::shared(
    "assigned",
    &[
        field("topic", Text),
        field("topic_id", Uuid),
        field("subtopology", Text),
        field("partitions", Array(&Int32)),
    ],
);

/// A member, in a row of a group.
pub(super) static MEMBER: Struct = Struct::shared(
    "member",
    &[
        field("member_id", Text),
        field("instance_id", Text),
        field("client_id", Text),
        field("client_host", Text),
        field("rack_id", Text),
        field("epoch", Int32),
        field("subscribed_topics", Array(&Text)),
        field("assignment", Array(&StructOf(&ASSIGNED))),
    ],
);

/// `MemberState.STABLE`.
const STABLE: i64 = 0;

/// A member of a consumer, share or streams group.
#[derive(Debug, Default)]
pub(super) struct Member {
    metadata: Option<Message<'static>>,
    assignment: Option<Message<'static>>,
}

impl Member {
    pub(super) fn set_metadata(&mut self, message: Message<'static>) {
        self.metadata = Some(message);
    }

    pub(super) fn set_assignment(&mut self, message: Message<'static>) {
        self.assignment = Some(message);
    }

    /// Whether it has the assignment of this epoch. *Source*: `ConsumerGroupMember.isReconciledTo`.
    pub(super) fn is_reconciled(&self, assignment_epoch: i64) -> bool {
        self.assignment.as_ref().is_some_and(|assignment| {
            assignment.number("state") == STABLE && assignment.number("memberEpoch") == assignment_epoch
        })
    }

    pub(super) fn assignor(&self) -> Option<&str> {
        self.metadata
            .as_ref()
            .map(|metadata| metadata.text("serverAssignor"))
            .filter(|assignor| !assignor.is_empty())
    }

    pub(super) fn row(&self, id: &str) -> Message<'static> {
        let of = |name: &str| self.metadata.as_ref().map_or(Value::Null, |metadata| metadata.value(name));
        let assignment = self.assignment.as_ref();
        let assigned = assignment.map_or(Value::Null, |assignment| {
            let topics = assignment.structs("assignedPartitions").map(|topic| {
                assigned(Value::Null, topic.value("topicId"), Value::Null, topic.value("partitions"))
            });
            let tasks = assignment.structs("activeTasks").map(|task| {
                assigned(Value::Null, Value::Null, task.value("subtopologyId"), task.value("partitions"))
            });
            Value::Array(topics.chain(tasks).collect())
        });
        let values = vec![
            Value::Text(id.to_owned().into()),
            of("instanceId"),
            of("clientId"),
            of("clientHost"),
            of("rackId"),
            assignment.map_or(Value::Null, |assignment| assignment.value("memberEpoch")),
            of("subscribedTopicNames"),
            assigned,
        ];
        Message { schema: &MEMBER, values }
    }
}

/// The members in the record of a classic group. What they subscribe to and are assigned is known of
/// consumers only.
pub(super) fn classic_members(group: &Message<'_>) -> Vec<Value<'static>> {
    let is_consumer = group.text("protocolType") == "consumer";
    let decode = |member: &Message<'_>, name: &str, schema: &'static Struct| {
        let Some(Value::Bytes(bytes)) = member.get(name).filter(|_| is_consumer) else { return None };
        let mut input = Readable::new(bytes);
        let version = input.int16().ok()?;
        Some(Message::read(schema, &mut input, version).ok()?.into_owned())
    };
    let members = group.structs("members").map(|member| {
        let subscription = decode(member, "subscription", &CONSUMER_PROTOCOL_SUBSCRIPTION);
        let assignment = decode(member, "assignment", &CONSUMER_PROTOCOL_ASSIGNMENT);
        let of_subscription =
            |name: &str| subscription.as_ref().map_or(Value::Null, |found| found.value(name));
        let assigned = assignment.map_or(Value::Null, |assignment| {
            let topics = assignment.structs("assignedPartitions").map(|topic| {
                assigned(topic.value("topic"), Value::Null, Value::Null, topic.value("partitions"))
            });
            Value::Array(topics.collect())
        });
        let values = vec![
            member.value("memberId").into_owned(),
            member.value("groupInstanceId").into_owned(),
            member.value("clientId").into_owned(),
            member.value("clientHost").into_owned(),
            of_subscription("rackId"),
            Value::Null,
            of_subscription("topics"),
            assigned,
        ];
        Value::Struct(Message { schema: &MEMBER, values })
    });
    members.collect()
}

fn assigned(
    topic: Value<'static>,
    topic_id: Value<'static>,
    subtopology: Value<'static>,
    partitions: Value<'static>,
) -> Value<'static> {
    Value::Struct(Message { schema: &ASSIGNED, values: vec![topic, topic_id, subtopology, partitions] })
}
