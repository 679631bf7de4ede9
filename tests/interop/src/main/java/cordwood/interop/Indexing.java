package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** `index`: one OffsetIndex or TimeIndex, operation by operation; after each, how it stands and the bytes of its entries. */
final class Indexing {
    private final JsonNode question;
    private final Path file;
    private AbstractIndex index;

    private Indexing(JsonNode question) throws IOException {
        this.question = question;
        file = Path.of(question.get("file").asText());
        open();
    }

    static void answer(JsonNode question, ObjectNode answer) throws IOException {
        Indexing indexing = new Indexing(question);
        var results = answer.putArray("results");
        for (JsonNode operation : question.get("operations")) {
            ObjectNode result = results.addObject();
            try {
                indexing.apply(operation);
            } catch (RuntimeException e) {
                Main.error(e, result);
            }
            AbstractIndex index = indexing.index;
            result.put("entries", index.entries()).put("max_entries", index.maxEntries()).put("is_full", index.isFull());
            result.put("length", Files.size(indexing.file));
            // behind its entries an index that was cut keeps what was there: nobody reads it, and a trim
            // takes it away
            result.put("bytes", Partition.hex(Arrays.copyOf(Files.readAllBytes(indexing.file), index.sizeInBytes())));
        }
        indexing.index.close();
    }

    private void apply(JsonNode operation) throws IOException {
        switch (operation.get(0).asText()) {
            case "append" -> ((OffsetIndex) index).append(operation.get(1).asLong(), operation.get(2).asInt());
            case "maybe_append" -> ((TimeIndex) index).maybeAppend(operation.get(1).asLong(), operation.get(2).asLong(), operation.get(3).asBoolean());
            case "truncate_to" -> index.truncateTo(operation.get(1).asLong());
            case "resize" -> index.resize(operation.get(1).asInt());
            case "trim" -> index.trimToValidSize();
            case "reset" -> index.reset();
            case "flush" -> index.flush();
            case "reopen" -> {
                index.close();
                open();
            }
            case "crash" -> { // the file stays as it is, zeros and all
                index.closeHandler();
                open();
            }
            default -> throw new IllegalArgumentException("no operation is called " + operation.get(0));
        }
    }

    private void open() throws IOException {
        long base = question.get("base_offset").asLong();
        int size = question.get("max_index_size").asInt();
        index = question.get("kind").asText().equals("time")
            ? new TimeIndex(file.toFile(), base, size) : new OffsetIndex(file.toFile(), base, size);
    }
}
