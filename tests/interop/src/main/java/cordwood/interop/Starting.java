package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Whether a broker starts on a data directory as it is. Its end is noted, and does not end this JVM. */
final class Starting {
    private static final long START_SECONDS = 60;
    private static final long STOP_SECONDS = 20;
    /** A broker that has started ends within this time if its replica manager or its cleaner cannot read their files. */
    private static final long WATCHED_MILLIS = 1500;
    /** A partition whose directory is not online keeps its leader for a moment after the start. */
    private static final long LEADER_SECONDS = 20;

    private Starting() { }

    /**
     * Answers `ended`, the reason, or `offsets`: for each name in `partitions` its first and end offset, or
     * an error. An error is awaited for those that are also in `unserved`.
     */
    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        CompletableFuture<String> ended = new CompletableFuture<>();
        Exit.setExitProcedure((status, message) -> end(ended, "exit " + status));
        Exit.setHaltProcedure((status, message) -> end(ended, "halt " + status));
        Complaints.taken();
        int port = Broker.freePort();
        Properties properties = Broker.properties(Path.of(question.get("dir").asText()), port, Broker.freePort());
        properties.put("log.cleaner.backoff.ms", "100");
        properties.put("initial.broker.registration.timeout.ms", "20000");
        question.path("settings").fields().forEachRemaining(s -> properties.put(s.getKey(), s.getValue().asText()));
        CompletableFuture<KafkaRaftServer> running = new CompletableFuture<>();
        Thread starting = new Thread(() -> {
            try {
                KafkaRaftServer server = new KafkaRaftServer(new KafkaConfig(properties), Time.SYSTEM);
                running.complete(server);
                server.startup();
                ended.complete(null);
            } catch (Throwable error) {
                ObjectNode text = Main.JSON.createObjectNode();
                Main.error(error, text);
                ended.complete(text.get("error").asText());
            }
        }, "starting");
        starting.setDaemon(true);
        starting.start();
        String reason;
        try {
            reason = ended.get(START_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            reason = "not started after " + START_SECONDS + " s";
        }
        if (reason == null) {
            CompletableFuture<String> later = new CompletableFuture<>();
            Exit.setExitProcedure((status, message) -> end(later, "exit " + status));
            Exit.setHaltProcedure((status, message) -> end(later, "halt " + status));
            offsets(question, "127.0.0.1:" + port, later, answer.putObject("offsets"));
            try {
                reason = later.get(WATCHED_MILLIS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException running_on) {
                reason = null;
            }
        }
        stop(running.getNow(null));
        if (reason != null) answer.put("ended", reason);
        Complaints.taken().forEach(answer.putArray("complaints")::add);
    }

    private static void end(CompletableFuture<String> ended, String reason) {
        ended.complete(reason);
        throw new IllegalStateException("the broker wants to end: " + reason);
    }

    private static void offsets(JsonNode question, String address, CompletableFuture<String> later, ObjectNode into) throws Exception {
        Set<String> unserved = new HashSet<>();
        question.path("unserved").forEach(name -> unserved.add(name.asText()));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address, "default.api.timeout.ms", 5000, "request.timeout.ms", 4000))) {
            for (JsonNode name : question.path("partitions")) {
                long patience = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEADER_SECONDS);
                do {
                    if (later.isDone()) return;
                    offsets(admin, name.asText(), into);
                } while (unserved.contains(name.asText()) && into.get(name.asText()).isArray() && System.nanoTime() < patience);
            }
        }
    }

    private static void offsets(Admin admin, String name, ObjectNode into) throws InterruptedException {
        int dash = name.lastIndexOf('-');
        TopicPartition partition = new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
        try {
            long first = admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get(6, TimeUnit.SECONDS).offset();
            long end = admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get(6, TimeUnit.SECONDS).offset();
            into.putArray(name).add(first).add(end);
        } catch (ExecutionException | TimeoutException error) {
            into.put(name, String.valueOf(error.getCause()));
        }
    }

    private static void stop(KafkaRaftServer server) throws InterruptedException {
        if (server == null) return;
        Thread stopping = new Thread(server::shutdown, "stopping");
        stopping.setDaemon(true);
        stopping.start();
        stopping.join(TimeUnit.SECONDS.toMillis(STOP_SECONDS));
    }
}
