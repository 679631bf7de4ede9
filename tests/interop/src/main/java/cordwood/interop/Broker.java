package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** A real broker on loopback (KRaft, broker and controller in one), and real clients for it. One at a time. */
final class Broker {
    private static final long PATIENCE_SECONDS = 30;
    private static KafkaRaftServer running;
    private static String address;

    private Broker() { }

    /** Starts on the data directory `dir`, which is formatted where it was not yet; `settings` are broker settings on top of ours. */
    static void start(JsonNode question, ObjectNode answer) throws Exception {
        Exit.setExitProcedure((status, message) -> { throw new IllegalStateException("the broker wants to exit: " + message); });
        Exit.setHaltProcedure((status, message) -> { throw new IllegalStateException("the broker wants to halt: " + message); });
        Path dir = Path.of(question.get("dir").asText());
        int port = freePort();
        Properties properties = properties(dir, port, freePort());
        question.path("settings").fields().forEachRemaining(s -> properties.put(s.getKey(), s.getValue().asText()));
        if (!Files.exists(dir.resolve("meta.properties"))) format(dir, properties);
        running = new KafkaRaftServer(new KafkaConfig(properties), Time.SYSTEM);
        running.startup();
        address = "127.0.0.1:" + port;
        answer.put("address", address);
    }

    static void stop(ObjectNode answer) {
        if (running != null) {
            running.shutdown();
            running.awaitShutdown();
            running = null;
        }
        ArrayNode complaints = answer.putArray("complaints");
        Complaints.taken().forEach(complaints::add);
    }

    static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", address));
    }

    static String address() {
        return address;
    }

    /** A topic of one partition; answers its id. */
    static void createTopic(JsonNode question, ObjectNode answer) throws Exception {
        Map<String, String> settings = new HashMap<>();
        question.path("settings").fields().forEachRemaining(s -> settings.put(s.getKey(), s.getValue().asText()));
        NewTopic topic = new NewTopic(question.get("topic").asText(), 1, (short) 1).configs(settings);
        try (Admin admin = admin()) {
            Uuid id = admin.createTopics(List.of(topic)).topicId(topic.name()).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
            // answered by the partition's leader, so its directory is there; the broker may learn of the
            // topic after the controller
            while (true) {
                try {
                    admin.listOffsets(Map.of(new TopicPartition(topic.name(), 0), OffsetSpec.earliest())).all().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
                    break;
                } catch (java.util.concurrent.ExecutionException error) {
                    boolean isUnknown = error.getCause() instanceof org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
                    if (!isUnknown || System.nanoTime() > until) {
                        throw error;
                    }
                    Thread.sleep(20);
                }
            }
            answer.put("topic_id", id.toString());
        }
    }

    /**
     * All of partition 0, from its beginning to its end, each as in {@link Lines}. With `skip_refused`, a
     * record that the consumer cannot read is listed, and passed.
     */
    static void consume(JsonNode question, ObjectNode answer) {
        TopicPartition partition = new TopicPartition(question.get("topic").asText(), 0);
        Map<String, Object> properties = new HashMap<>(Map.of("bootstrap.servers", address, "enable.auto.commit", false));
        question.path("settings").fields().forEachRemaining(s -> properties.put(s.getKey(), s.getValue().asText()));
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            answer.put("beginning", consumer.beginningOffsets(List.of(partition)).get(partition)).put("end", end);
            Lines lines = new Lines(question.path("lines").asBoolean() ? Main.JSON.createArrayNode() : null);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(question.path("patience").asLong(PATIENCE_SECONDS));
            ArrayNode refused = answer.putArray("refused");
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("stuck at " + consumer.position(partition) + " of " + end);
                try {
                    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                        lines.add(r.offset(), r.timestampType().id, r.timestamp(), r.leaderEpoch().orElse(-1), wrapped(r.key()), wrapped(r.value()), r.headers());
                    }
                } catch (KafkaException error) {
                    if (!question.path("skip_refused").asBoolean()) throw error;
                    long at = consumer.position(partition);
                    refused.addObject().put("offset", at).put("error", error.getMessage() + ": " + error.getCause());
                    consumer.seek(partition, at + 1);
                }
            }
            lines.into(answer);
        }
    }

    /** Sends the records to partition 0, waits for each to be acknowledged, and answers their offsets. With a transactional id, in a transaction. */
    static void produce(JsonNode question, ObjectNode answer) throws Exception {
        String topic = question.get("topic").asText();
        Map<String, Object> properties = new HashMap<>(Map.of("bootstrap.servers", address, "acks", "all"));
        question.path("settings").fields().forEachRemaining(s -> properties.put(s.getKey(), s.getValue().asText()));
        ArrayNode offsets = answer.putArray("offsets");
        boolean inTransaction = properties.containsKey("transactional.id");
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (inTransaction) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (JsonNode record : question.get("records")) {
                var sent = new ProducerRecord<>(topic, 0, record.get("timestamp").asLong(), bytes(record.path("key")), bytes(record.path("value")));
                for (JsonNode header : record.path("headers")) sent.headers().add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                offsets.add(producer.send(sent).get(PATIENCE_SECONDS, TimeUnit.SECONDS).offset());
            }
            if (inTransaction && question.path("abort").asBoolean()) producer.abortTransaction();
            else if (inTransaction) producer.commitTransaction();
        }
    }

    static Properties properties(Path dir, int port, int controllerPort) {
        Properties p = new Properties();
        p.put("process.roles", "broker,controller");
        p.put("node.id", "1");
        p.put("log.dirs", dir.toString());
        p.put("listeners", "PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controllerPort);
        p.put("advertised.listeners", "PLAINTEXT://127.0.0.1:" + port);
        p.put("controller.listener.names", "CONTROLLER");
        p.put("controller.quorum.voters", "1@127.0.0.1:" + controllerPort);
        p.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        p.put("auto.create.topics.enable", "false");
        p.put("log.cleaner.dedupe.buffer.size", "1048577");
        p.put("log.cleaner.threads", "1");
        for (String threads : Set.of("num.network.threads", "num.io.threads", "background.threads", "num.replica.fetchers")) p.put(threads, "1");
        for (String internal : Set.of("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")) {
            p.put(internal + ".replication.factor", "1");
        }
        p.put("transaction.state.log.min.isr", "1");
        p.put("share.coordinator.state.topic.min.isr", "1");
        return p;
    }

    private static void format(Path dir, Properties properties) throws IOException {
        Files.createDirectories(dir);
        Path file = Files.createTempFile("server", ".properties");
        try {
            try (OutputStream out = Files.newOutputStream(file)) {
                properties.store(out, null);
            }
            int status = StorageTool.execute(
                new String[] {"format", "--cluster-id", Uuid.randomUuid().toString(), "--config", file.toString()}, System.err);
            if (status != 0) throw new IOException("formatting " + dir + " ended with " + status);
        } finally {
            Files.delete(file);
        }
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static ByteBuffer wrapped(byte[] bytes) {
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private static byte[] bytes(JsonNode base64) {
        return base64.isTextual() ? Base64.getDecoder().decode(base64.textValue()) : null;
    }
}
