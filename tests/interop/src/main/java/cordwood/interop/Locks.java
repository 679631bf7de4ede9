package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;

/** `lock` and `unlock`: a file locked as a broker locks the `.lock` of a data directory (FileChannel.tryLock of the whole file). */
final class Locks {
    private static final Map<Path, FileLock> HELD = new HashMap<>();

    private Locks() { }

    /** Answers whether the lock was got; it is held until `unlock`. */
    static void lock(JsonNode question, ObjectNode answer) throws IOException {
        Path file = Path.of(question.get("file").asText());
        FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
        FileLock lock = channel.tryLock();
        if (lock == null) channel.close();
        else HELD.put(file, lock);
        answer.put("locked", lock != null);
    }

    static void unlock(JsonNode question) throws IOException {
        HELD.remove(Path.of(question.get("file").asText())).acquiredBy().close();
    }
}
