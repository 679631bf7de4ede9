package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** `open`: what UnifiedLog makes of a directory; it sees a copy only. */
final class Opening {
    private static final int FETCH_BYTES = 1 << 20;

    private Opening() { }

    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        Path source = Path.of(question.get("dir").asText());
        Path scratch = Files.createTempDirectory("interop");
        try {
            Path dir = scratch.resolve(source.getFileName().toString());
            Partition.copy(source, dir);
            answer.set("before", Partition.listing(dir));
            long bytesBefore = logBytes(dir);
            Background background = new Background();
            UnifiedLog log = Partition.open(dir, Partition.config(question.path("settings")),
                question.path("log_start_offset").asLong(0), question.path("recovery_point").asLong(0),
                question.path("clean").asBoolean(), new Clock(question.path("now").asLong(0)), background, Optional.empty());
            log.updateHighWatermark(log.logEndOffset());
            background.run();
            answer.put("bytes_cut", bytesBefore - log.size());
            describe(log, answer);
            read(log, question.path("lines").asBoolean(), answer.putObject("records"));
            log.close();
            background.run();
            answer.set("after", Partition.listing(dir));
        } finally {
            complaints(answer, scratch);
            Partition.delete(scratch);
        }
    }

    static void describe(UnifiedLog log, ObjectNode answer) throws Exception {
        answer.put("log_start_offset", log.logStartOffset()).put("log_end_offset", log.logEndOffset());
        answer.put("recovery_point", log.recoveryPoint());
        answer.put("topic_id", log.topicId().map(Object::toString).orElse(null));
        ArrayNode segments = answer.putArray("segments");
        for (LogSegment segment : log.logSegments()) {
            segments.addObject().put("base_offset", segment.baseOffset()).put("size", segment.size())
                .put("offset_entries", segment.offsetIndex().entries()).put("time_entries", segment.timeIndex().entries())
                .put("largest_timestamp", segment.largestRecordTimestamp().orElse(-1));
        }
        ArrayNode epochs = answer.putArray("epochs");
        log.leaderEpochCache().epochEntries().forEach(e -> epochs.addArray().add(e.epoch()).add(e.startOffset()));
    }

    /** From the log's start to its end, as fetches do. */
    private static void read(UnifiedLog log, boolean keep, ObjectNode answer) throws Exception {
        Lines lines = new Lines(keep ? Main.JSON.createArrayNode() : null);
        long next = log.logStartOffset();
        while (next < log.logEndOffset()) {
            FetchDataInfo fetched = log.read(next, FETCH_BYTES, FetchIsolation.LOG_END, true);
            long from = next;
            for (RecordBatch batch : fetched.records.batches()) {
                for (Record record : batch) {
                    if (record.offset() < from) continue;
                    lines.add(record.offset(), batch.timestampType().id, record.timestamp(), batch.partitionLeaderEpoch(),
                        record.key(), record.value(), List.of(record.headers()));
                }
                next = batch.nextOffset();
            }
            if (next == from) break;
        }
        answer.put("next", next);
        lines.into(answer);
    }

    static void complaints(ObjectNode answer, Path scratch) {
        ArrayNode complaints = answer.putArray("complaints");
        for (String line : Complaints.taken()) complaints.add(line.replace(scratch.toString(), ""));
    }

    private static long logBytes(Path dir) throws Exception {
        long bytes = 0;
        for (Path file : Partition.files(dir)) if (file.toString().endsWith(".log")) bytes += Files.size(file);
        return bytes;
    }
}
