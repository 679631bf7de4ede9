package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Optional;

/** `write`: UnifiedLog makes a directory, step by step. */
final class Writing {
    private static final int BATCH_BYTES = 1 << 16;

    private final Path dir;
    private final LogConfig config;
    private final Optional<Uuid> topicId;
    private final Clock clock;
    private final int expirationMs;
    private final Background background = new Background();
    private UnifiedLog log;

    private Writing(JsonNode question) throws IOException {
        dir = Path.of(question.get("dir").asText());
        config = Partition.config(question.path("settings"));
        topicId = Optional.ofNullable(question.path("topic_id").textValue()).map(Uuid::fromString);
        clock = new Clock(question.path("now").asLong(0));
        expirationMs = question.path("producer_id_expiration_ms").asInt(Integer.MAX_VALUE);
        open(0, Long.MAX_VALUE, true);
    }

    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        Writing writing = new Writing(question);
        var results = answer.putArray("steps");
        for (JsonNode step : question.path("steps")) {
            ObjectNode result = results.addObject();
            try {
                writing.step(step, result);
            } catch (Exception e) {
                Main.error(e, result);
            }
            writing.background.run();
            writing.log.updateHighWatermark(writing.log.logEndOffset());
            result.put("log_start_offset", writing.log.logStartOffset()).put("log_end_offset", writing.log.logEndOffset())
                .put("last_stable_offset", writing.log.lastStableOffset());
        }
        Opening.describe(writing.log, answer);
        if (question.path("close").asBoolean(true)) writing.close();
        else writing.log.flush(true);
        answer.set("files", Partition.listing(writing.dir));
        Opening.complaints(answer, writing.dir);
    }

    private void step(JsonNode step, ObjectNode result) throws Exception {
        if (step.has("now")) clock.set(step.get("now").asLong());
        int epoch = step.path("leader_epoch").asInt(0);
        switch (step.get("do").asText()) {
            case "append" -> appended(log.appendAsLeader(built(step), epoch), result);
            case "raw" -> appended(log.appendAsLeader(raw(step), epoch), result);
            case "end" -> {
                EndTransactionMarker marker = new EndTransactionMarker(
                    step.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT, step.path("coordinator_epoch").asInt(0));
                MemoryRecords records = MemoryRecords.withEndTransactionMarker(clock.milliseconds(), step.get("producer_id").asLong(),
                    (short) step.get("producer_epoch").asInt(), marker);
                appended(log.appendAsLeader(records, epoch, AppendOrigin.COORDINATOR, RequestLocal.noCaching(), VerificationGuard.SENTINEL,
                    (short) step.get("version").asInt()), result);
            }
            case "follow" -> appended(log.appendAsFollower(raw(step), step.path("leader_epoch").asInt(Integer.MAX_VALUE)), result);
            case "roll" -> log.roll();
            case "flush" -> log.flush(false);
            case "truncate_to" -> {
                log.truncateTo(step.get("offset").asLong());
                Compacting.lowerCheckpoint(log);
            }
            case "truncate_fully" -> {
                log.truncateFullyAndStartAt(step.get("offset").asLong(), Optional.empty());
                Compacting.lowerCheckpoint(log);
            }
            case "delete_before" -> {
                log.maybeIncrementLogStartOffset(step.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
                log.deleteOldSegments();
            }
            case "compact" -> Compacting.compact(log, clock, step, result);
            case "retain" -> result.put("deleted", log.deleteOldSegments());
            case "reopen" -> {
                long start = log.logStartOffset();
                close();
                open(start, Long.MAX_VALUE, true);
            }
            case "crash" -> {
                long start = log.logStartOffset();
                long recoveryPoint = log.recoveryPoint();
                log.closeHandlers();
                open(start, recoveryPoint, false);
                log.flush(true);
            }
            default -> throw new IllegalArgumentException("no step is called " + step.get("do"));
        }
    }

    private void open(long logStart, long recoveryPoint, boolean clean) throws IOException {
        log = Partition.open(dir, config, logStart, recoveryPoint, clean, clock, background, topicId, expirationMs);
        background.run();
        log.updateHighWatermark(log.logEndOffset());
    }

    /** As a broker that is told to stop: flush first, which makes the indexes of a segment that nothing was appended to. */
    private void close() {
        background.run();
        log.flush(true);
        log.close();
    }

    private static void appended(LogAppendInfo info, ObjectNode result) {
        result.put("first", info.firstOffset()).put("last", info.lastOffset()).put("max_timestamp", info.maxTimestamp());
    }

    private static MemoryRecords raw(JsonNode step) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode(step.get("batches").asText())));
    }

    /** One batch, as a producer sends it. */
    private static MemoryRecords built(JsonNode step) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(BATCH_BYTES), RecordBatch.CURRENT_MAGIC_VALUE,
            Compression.of(CompressionType.forName(step.path("compression").asText("none"))).build(), TimestampType.CREATE_TIME, 0);
        for (JsonNode record : step.get("records")) {
            JsonNode named = record.path("headers");
            Header[] headers = new Header[named.size()];
            for (int i = 0; i < headers.length; i++) headers[i] = new RecordHeader(named.get(i).get(0).asText(), bytes(named.get(i).get(1)));
            builder.append(record.path("timestamp").asLong(-1), bytes(record.path("key")), bytes(record.path("value")), headers);
        }
        return builder.build();
    }

    private static byte[] bytes(JsonNode base64) {
        return base64.isTextual() ? Base64.getDecoder().decode(base64.textValue()) : null;
    }
}
