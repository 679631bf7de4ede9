package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** Groups, transactions, quotas and users of the broker, made by real clients; and what its Admin client says of them. */
final class Coordinators {
    private Coordinators() { }

    /** Fills the broker's internal topics; `topic` has one partition, with at least 20 records. */
    static void use(JsonNode question) throws Exception {
        TopicPartition partition = new TopicPartition(question.get("topic").asText(), 0);
        for (String protocol : List.of("classic", "consumer")) {
            for (int group = 0; group < 3; group++) consume(protocol, protocol + "-" + group, partition, 4 * group + 3);
        }
        try (Admin admin = Broker.admin()) {
            admin.alterConsumerGroupOffsets("by-admin", Map.of(partition, new OffsetAndMetadata(7, Optional.of(0), "from ü"))).all().get();
            admin.alterConsumerGroupOffsets("moved", Map.of(partition, new OffsetAndMetadata(5))).all().get();
            admin.alterConsumerGroupOffsets("moved", Map.of(partition, new OffsetAndMetadata(2))).all().get();
            admin.alterConsumerGroupOffsets("forgotten", Map.of(partition, new OffsetAndMetadata(9))).all().get();
            admin.deleteConsumerGroupOffsets("forgotten", Set.of(partition)).all().get();
            admin.alterConsumerGroupOffsets("deleted", Map.of(partition, new OffsetAndMetadata(9))).all().get();
            admin.deleteConsumerGroups(List.of("deleted")).all().get();
            admin.alterClientQuotas(List.of(
                quota(Map.of("user", "alice"), "producer_byte_rate", 1024.0), quota(Map.of("client-id", "c"), "request_percentage", 12.5),
                quota(new HashMap<>() {{ put("user", null); }}, "consumer_byte_rate", 99.0), quota(Map.of("user", "bob"), "producer_byte_rate", 1.0)
            )).all().get();
            admin.alterClientQuotas(List.of(quota(Map.of("user", "bob"), "producer_byte_rate", null))).all().get();
            admin.alterUserScramCredentials(List.of(
                new UserScramCredentialUpsertion("alice", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"),
                new UserScramCredentialUpsertion("carol", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192), "secret")
            )).all().get();
        }
        try (var producer = transact("committed", partition, 11)) {
            producer.commitTransaction();
        }
        try (var producer = transact("aborted", partition, 12)) {
            producer.abortTransaction();
        }
        // without time to abort it, the transaction stays open
        transact("open", partition, 13).close(Duration.ZERO);
    }

    private static ClientQuotaAlteration quota(Map<String, String> entity, String key, Double value) {
        return new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op(key, value)));
    }

    private static void consume(String protocol, String group, TopicPartition partition, long offset) {
        Map<String, Object> properties = Map.of("bootstrap.servers", Broker.address(), "enable.auto.commit", false,
            "group.protocol", protocol, "group.id", group, "client.id", "client-of-" + group, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(partition.topic()));
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (consumer.assignment().isEmpty()) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("no partition was assigned to " + group);
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset - 1, Optional.of(0), "before")));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset, Optional.of(0), group)));
        }
    }

    /** A transaction of two records and of an offset of the group `offsets-of-<id>`. */
    private static KafkaProducer<byte[], byte[]> transact(String id, TopicPartition partition, long offset) throws Exception {
        Map<String, Object> properties = Map.of("bootstrap.servers", Broker.address(), "transactional.id", id, "transaction.timeout.ms", 90_000);
        var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        producer.beginTransaction();
        for (int n = 0; n < 2; n++) producer.send(new ProducerRecord<>(partition.topic(), 0, null, id.getBytes())).get();
        producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(offset)), new ConsumerGroupMetadata("offsets-of-" + id));
        producer.flush();
        return producer;
    }

    /** What the Admin client says. */
    static void describe(JsonNode question, ObjectNode answer) throws Exception {
        TopicPartition partition = new TopicPartition(question.get("topic").asText(), 0);
        try (Admin admin = Broker.admin()) {
            answer.put("end", admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset());
            groups(admin, answer);
            ArrayNode transactions = answer.putArray("transactions");
            Collection<String> ids = admin.listTransactions().all().get().stream().map(t -> t.transactionalId()).sorted().toList();
            for (String id : ids) {
                var one = admin.describeTransactions(List.of(id)).description(id).get();
                transactions.addObject().put("transactional_id", id).put("producer_id", one.producerId())
                    .put("producer_epoch", one.producerEpoch()).put("timeout_ms", one.transactionTimeoutMs())
                    .put("state", one.state().toString())
                    .put("start_time", one.transactionStartTimeMs().isPresent() ? one.transactionStartTimeMs().getAsLong() : null);
            }
            ArrayNode open = answer.putArray("open");
            for (var producer : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
                if (producer.currentTransactionStartOffset().isEmpty()) continue;
                open.addObject().put("producer_id", producer.producerId()).put("producer_epoch", producer.producerEpoch())
                    .put("first_offset", producer.currentTransactionStartOffset().getAsLong()).put("last_time", producer.lastTimestamp());
            }
            metadata(admin, answer);
        }
    }

    private static void groups(Admin admin, ObjectNode answer) throws Exception {
        ArrayNode groups = answer.putArray("groups"), offsets = answer.putArray("offsets");
        var names = new TreeMap<String, ObjectNode>();
        for (var listed : admin.listGroups().all().get()) {
            names.put(listed.groupId(), Main.JSON.createObjectNode().put("group", listed.groupId())
                .put("type", listed.type().map(Object::toString).orElse(null)).put("state", listed.groupState().map(Object::toString).orElse(null)));
        }
        for (var entry : names.entrySet()) {
            groups.add(entry.getValue());
            var spec = Map.of(entry.getKey(), new ListConsumerGroupOffsetsSpec());
            var committed = admin.listConsumerGroupOffsets(spec).partitionsToOffsetAndMetadata(entry.getKey()).get();
            committed.forEach((where, offset) -> {
                if (offset == null) return;
                offsets.addObject().put("group", entry.getKey()).put("topic", where.topic()).put("partition", where.partition())
                    .put("offset", offset.offset()).put("leader_epoch", offset.leaderEpoch().orElse(null)).put("metadata", offset.metadata());
            });
        }
    }

    private static void metadata(Admin admin, ObjectNode answer) throws Exception {
        ArrayNode topics = answer.putArray("topics"), configs = answer.putArray("configs");
        for (String name : new java.util.TreeSet<>(admin.listTopics(new org.apache.kafka.clients.admin.ListTopicsOptions().listInternal(true)).names().get())) {
            var topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            topics.addObject().put("topic", name).put("topic_id", topic.topicId().toString()).put("partitions", topic.partitions().size());
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            for (ConfigEntry entry : config.entries()) {
                if (entry.source() != ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) continue;
                configs.addObject().put("resource", name).put("name", entry.name()).put("value", entry.value());
            }
        }
        ArrayNode quotas = answer.putArray("quotas");
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, values) -> values.forEach((key, value) -> {
            ObjectNode quota = quotas.addObject().put("key", key).put("value", value);
            for (String kind : List.of("user", "client-id")) {
                Map<String, String> names = entity.entries();
                quota.put(kind, !names.containsKey(kind) ? null : names.get(kind) == null ? "<default>" : names.get(kind));
            }
        }));
        ArrayNode users = answer.putArray("users");
        admin.describeUserScramCredentials().all().get().forEach((user, described) -> described.credentialInfos().forEach(info ->
            users.addObject().put("user", user).put("mechanism", info.mechanism().mechanismName()).put("iterations", info.iterations())));
        ArrayNode features = answer.putArray("features");
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, levels) ->
            features.addObject().put("feature", name).put("level", levels.maxVersionLevel()));
    }
}
