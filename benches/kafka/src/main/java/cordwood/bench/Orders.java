package cordwood.bench;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.Record;

import java.nio.charset.StandardCharsets;

/**
 * Records like those of a web shop, always the same: about 110 bytes of JSON with a short key, sometimes a
 * header, few nulls. One per millisecond, out of order by up to 20 ms.
 */
final class Orders {
    private static final long START = 1_700_000_000_000L;
    private static final String[] WORDS = {"red", "gift", "express", "returned", "blue", "large", "second-hand", "small"};

    private final Numbers random = new Numbers(7);
    private long number;
    private long timestamp;
    private byte[] key;
    private byte[] value;
    private Header[] headers;

    /** Makes the next record. */
    void next() {
        timestamp = START + number + random.below(20);
        long user = random.below(100_000);
        key = random.below(16) == 0 ? null : bytes("user-" + user);
        value = random.below(64) == 0 ? null : value(user);
        headers = random.below(8) == 0 ? trace(random.below(Long.MAX_VALUE)) : Record.EMPTY_HEADERS;
        number++;
    }

    private static Header[] trace(long id) {
        return new Header[] {new RecordHeader("trace", bytes(String.format("%016x", id)))};
    }

    private byte[] value(long user) {
        long cents = random.below(100_000);
        StringBuilder text = new StringBuilder(160).append("{\"order\":").append(number).append(",\"user\":\"user-").append(user)
            .append("\",\"item\":").append(random.below(1_000_000)).append(",\"amount\":").append(cents / 100).append('.')
            .append(cents / 10 % 10).append(cents % 10).append(",\"note\":\"");
        for (long i = random.below(6); i > 0; i--) text.append(WORDS[(int) random.below(8)]).append(' ');
        return bytes(text.append("\"}").toString());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    long timestamp() {
        return timestamp;
    }

    byte[] key() {
        return key;
    }

    byte[] value() {
        return value;
    }

    Header[] headers() {
        return headers;
    }
}
