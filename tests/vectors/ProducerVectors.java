import java.io.File;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CompletedTxn;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;

/**
 * Writes producer_states.txt of this folder from Kafka's own classes; README.md says how to run it.
 *
 * A history of producers is made from a seed, here and in tests/rust/state/producers.rs in the same way:
 * batches, markers, expiry and restarts from a snapshot. A line has the seed, the number of producers at the
 * end, and the checksum of all snapshots, with the producers by ascending id, and of the ended transactions.
 */
public class ProducerVectors {
    static final int EXPIRATION_MS = 1000;
    static final int MOST = Integer.MAX_VALUE;
    static final TopicPartition PARTITION = new TopicPartition("orders", 0);

    final CRC32C digest = new CRC32C();
    final Path folder;
    final List<Long> known = new ArrayList<>();
    long random;
    ProducerStateManager manager;

    public static void main(String[] arguments) throws Exception {
        try (PrintWriter out = new PrintWriter(new File(arguments[0], "producer_states.txt"), "UTF-8")) {
            for (int seed = 1; seed <= 1500; seed++) {
                ProducerVectors history = new ProducerVectors(seed);
                out.print(seed + " " + history.run(seed) + "\n");
            }
        }
    }

    ProducerVectors(long seed) throws Exception {
        random = seed * 0x9E3779B97F4A7C15L;
        folder = Files.createTempDirectory("producers");
        manager = manager();
    }

    ProducerStateManager manager() throws Exception {
        ProducerStateManagerConfig config = new ProducerStateManagerConfig(EXPIRATION_MS, false);
        return new ProducerStateManager(PARTITION, folder.toFile(), 900_000, config, Time.SYSTEM);
    }

    int below(int n) {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        return (int) ((random >>> 33) % n);
    }

    long key(int shape) {
        return switch (shape) {
            case 0 -> 1000L * (below(3) + 1) + below(400);
            case 1 -> (long) below(MOST) << 31 | below(MOST);
            case 2 -> (long) below(400) << 20;
            case 3 -> ((long) below(300) << 32 | below(4)) << 10;
            case 4 -> (long) below(60) << (6 + below(12));
            default -> (long) below(40) * 0x100010001L;
        };
    }

    void add(long number) {
        for (int shift = 56; shift >= 0; shift -= 8) digest.update((int) (number >>> shift));
    }

    byte[] snapshot() throws Exception {
        File file = folder.resolve("snapshot").toFile();
        Files.deleteIfExists(file.toPath());
        Field producers = ProducerStateManager.class.getDeclaredField("producers");
        producers.setAccessible(true);
        @SuppressWarnings("unchecked")
        Map<Long, ProducerStateEntry> map = (Map<Long, ProducerStateEntry>) producers.get(manager);
        // in one order of all that Kafka reads
        ProducerStateManager.writeSnapshot(file, new TreeMap<>(map), false);
        byte[] bytes = Files.readAllBytes(file.toPath());
        digest.update(bytes);
        return bytes;
    }

    String run(int seed) throws Exception {
        int shape = below(6);
        int steps = seed % 100 == 0 ? 6000 : 20 + below(500);
        long offset = 0;
        long now = 0;
        for (int step = 0; step < steps; step++) {
            now += below(30);
            switch (below(40)) {
                case 0 -> {
                    if (below(4) == 0) manager.removeExpiredProducers(now);
                }
                case 1 -> {
                    if (below(10) == 0) {
                        snapshot();
                        List<ProducerStateEntry> entries =
                            ProducerStateManager.readSnapshot(folder.resolve("snapshot").toFile());
                        manager = manager();
                        entries.forEach(manager::loadProducerEntry);
                    }
                }
                case 2, 3, 4, 5, 6, 7 -> {
                    marker(producer(shape), offset, now);
                    offset += 1;
                }
                default -> {
                    int delta = below(5);
                    batch(producer(shape), offset, delta, now);
                    offset += delta + 1;
                }
            }
        }
        snapshot();
        int count = manager.activeProducers().size();
        for (File file : folder.toFile().listFiles()) file.delete();
        Files.delete(folder);
        return count + " " + Long.toHexString(digest.getValue());
    }

    long producer(int shape) {
        if (!known.isEmpty() && below(3) == 0) return known.get(below(known.size()));
        long key = key(shape);
        known.add(key);
        return key;
    }

    int epoch(Optional<ProducerStateEntry> entry) {
        int epoch = entry.map(e -> (int) e.producerEpoch()).orElse(0);
        int change = below(16);
        return Math.max(0, change == 0 ? epoch + 1 : change == 1 ? epoch - 1 : epoch);
    }

    void batch(long producerId, long offset, int delta, long timestamp) {
        Optional<ProducerStateEntry> entry = manager.lastEntry(producerId);
        int epoch = epoch(entry);
        boolean isOpen = entry.isPresent() && entry.get().currentTxnFirstOffset().isPresent();
        boolean isTransactional = below(4) == 0 || isOpen;
        int base = below(8) == 0 ? MOST - below(6) : below(1000);
        int last = base > MOST - delta ? delta - (MOST - base) - 1 : base + delta;
        ProducerAppendInfo info = manager.prepareUpdate(producerId, AppendOrigin.REPLICATION);
        info.appendDataBatch((short) epoch, base, last, timestamp, new LogOffsetMetadata(offset), offset + delta, isTransactional);
        manager.update(info);
    }

    void marker(long producerId, long offset, long timestamp) {
        int epoch = epoch(manager.lastEntry(producerId));
        ControlRecordType type = below(2) == 0 ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
        EndTransactionMarker marker = new EndTransactionMarker(type, below(3));
        ProducerAppendInfo info = manager.prepareUpdate(producerId, AppendOrigin.REPLICATION);
        Optional<CompletedTxn> completed = info.appendEndTxnMarker(marker, (short) epoch, offset, timestamp, (short) 0);
        manager.update(info);
        completed.ifPresent(txn -> {
            add(txn.producerId());
            add(txn.firstOffset());
            add(txn.lastOffset());
            add(txn.isAborted() ? 1 : 0);
            add(manager.lastStableOffset(txn));
            manager.completeTxn(txn);
        });
    }
}
