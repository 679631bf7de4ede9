package cordwood.interop;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.header.Header;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;

/**
 * Records, one line each: offset, timestamp type (0 CreateTime, 1 LogAppendTime), timestamp, leader epoch,
 * key, value, and for each header its key and value; separated by spaces, bytes in hexadecimal, "-" for null,
 * nothing for empty. The digest is over the lines, each with its line feed.
 */
final class Lines {
    private final MessageDigest digest = Partition.sha256();
    private final ArrayNode kept;
    private long count;
    private long first = -1;
    private long last = -1;

    /** @param kept also gets the lines, where it is not null */
    Lines(ArrayNode kept) {
        this.kept = kept;
    }

    void add(long offset, int timestampType, long timestamp, int epoch, ByteBuffer key, ByteBuffer value, Iterable<Header> headers) {
        StringBuilder line = new StringBuilder();
        line.append(offset).append(' ').append(timestampType).append(' ').append(timestamp).append(' ').append(epoch);
        line.append(' ').append(hex(key)).append(' ').append(hex(value));
        for (Header header : headers) {
            line.append(' ').append(Partition.hex(header.key().getBytes(StandardCharsets.UTF_8)));
            line.append(' ').append(header.value() == null ? "-" : Partition.hex(header.value()));
        }
        if (kept != null) kept.add(line.toString());
        digest.update(line.append('\n').toString().getBytes(StandardCharsets.UTF_8));
        if (first < 0) first = offset;
        last = offset;
        count++;
    }

    void into(ObjectNode answer) {
        answer.put("count", count).put("first", first).put("last", last).put("sha256", Partition.hex(digest.digest()));
        if (kept != null) answer.set("lines", kept);
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) return "-";
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
