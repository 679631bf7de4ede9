import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TransactionIndex;
import org.apache.kafka.storage.internals.log.TxnIndexSearchResult;

/**
 * Writes index_cases.jsonl of this folder from Kafka's own index classes; README.md says how to run it.
 *
 * A case is an index file, steps that change it, what Kafka said to each and how the index stood afterwards,
 * some look-ups, and the file's bytes once it was closed.
 */
public class IndexVectors {
    static final ObjectMapper JSON = new ObjectMapper();
    static final List<ObjectNode> CASES = new ArrayList<>();
    static final long MOST = Integer.MAX_VALUE;

    public static void main(String[] arguments) throws Exception {
        byHand();
        for (int seed = 0; seed < 8; seed++) {
            random("offset", seed);
            random("time", seed);
            random("transaction", seed);
        }
        try (PrintWriter out = new PrintWriter(new File(arguments[0], "index_cases.jsonl"), "UTF-8")) {
            for (ObjectNode each : CASES) {
                out.print(JSON.writeValueAsString(each) + "\n");
            }
        }
    }

    /** One index and what was done to it. */
    static final class Case implements AutoCloseable {
        final ObjectNode json = JSON.createObjectNode();
        final ArrayNode steps;
        final Path folder = Files.createTempDirectory("index");
        final File file;
        final String kind;
        final long base;
        final int max;
        AbstractIndex index;
        TransactionIndex transactions;

        Case(String name, String kind, long base, int max, String existing) throws Exception {
            this.kind = kind;
            this.base = base;
            this.max = max;
            file = folder.resolve("index").toFile();
            if (existing != null) {
                Files.write(file.toPath(), HexFormat.of().parseHex(existing));
            }
            json.put("name", name).put("kafka", AppInfoParser.getVersion()).put("kind", kind).put("base_offset", base);
            json.put("max_index_size", max).put("existing", existing);
            try {
                open();
                json.set("opened", state());
            } catch (IllegalArgumentException refused) {
                json.put("refused", refused.getClass().getSimpleName());
            }
            steps = json.putArray("steps");
        }

        void open() throws Exception {
            switch (kind) {
                case "offset" -> index = new OffsetIndex(file, base, max, true);
                case "time" -> index = new TimeIndex(file, base, max, true);
                default -> transactions = new TransactionIndex(base, file);
            }
        }

        ObjectNode state() {
            ObjectNode state = JSON.createObjectNode();
            if (transactions != null) {
                return state.put("entries", transactions.allAbortedTxns().size()).put("length", file.length());
            }
            state.put("entries", index.entries()).put("max_entries", index.maxEntries()).put("is_full", index.isFull());
            state.put("length", file.length());
            if (index instanceof TimeIndex times) {
                state.putArray("last").add(times.lastEntry().timestamp()).add(times.lastEntry().offset());
            } else {
                state.putArray("last").add(((OffsetIndex) index).lastOffset());
            }
            return state;
        }

        Case step(String verb, long... numbers) throws Exception {
            if (json.has("refused")) {
                return this;
            }
            ObjectNode step = steps.addObject();
            ArrayNode call = step.putArray("call");
            call.add(verb);
            for (long number : numbers) {
                call.add(number);
            }
            try {
                Boolean changed = transactions == null ? call(verb, numbers) : callTransactions(verb, numbers);
                if (changed != null) {
                    step.put("changed", changed);
                }
            } catch (RuntimeException refused) {
                step.put("refused", refused.getClass().getSimpleName());
            }
            step.set("state", state());
            return this;
        }

        Boolean call(String verb, long... numbers) throws Exception {
            switch (verb) {
                case "append" -> ((OffsetIndex) index).append(numbers[0], (int) numbers[1]);
                case "maybe_append" -> {
                    int before = index.entries();
                    ((TimeIndex) index).maybeAppend(numbers[0], numbers[1], numbers[2] == 1);
                    return index.entries() != before;
                }
                case "truncate_to" -> index.truncateTo(numbers[0]);
                case "resize" -> {
                    return index.resize((int) numbers[0]);
                }
                case "trim" -> index.trimToValidSize();
                case "reset" -> index.reset();
                case "flush" -> index.flush();
                case "reopen" -> {
                    index.close();
                    open();
                }
                default -> throw new AssertionError(verb);
            }
            return null;
        }

        Boolean callTransactions(String verb, long... numbers) throws Exception {
            switch (verb) {
                case "append" -> transactions.append(new AbortedTxn(numbers[0], numbers[1], numbers[2], numbers[3]));
                case "truncate_to" -> transactions.truncateTo(numbers[0]);
                case "reset" -> transactions.reset();
                case "flush" -> transactions.flush();
                default -> throw new AssertionError(verb);
            }
            return null;
        }

        @Override
        public void close() throws Exception {
            if (!json.has("refused")) {
                ArrayNode lookups = json.putArray("lookups");
                for (long target = base - 2; target < base + 60; target += 3) {
                    ArrayNode lookup = lookups.addArray().add(target);
                    if (index instanceof OffsetIndex offsets) {
                        lookup.add(offsets.lookup(target).offset()).add(offsets.lookup(target).position());
                    } else if (index instanceof TimeIndex times) {
                        lookup.add(times.lookup(target).timestamp()).add(times.lookup(target).offset());
                    } else {
                        TxnIndexSearchResult found = transactions.collectAbortedTxns(target, target + 5);
                        lookup.add(found.abortedTransactions().size()).add(found.isComplete() ? 1 : 0);
                    }
                }
                if (transactions == null) {
                    index.close();
                } else {
                    transactions.close();
                }
                json.put("closed", file.exists() ? HexFormat.of().formatHex(Files.readAllBytes(file.toPath())) : null);
            }
            CASES.add(json);
            Files.deleteIfExists(file.toPath());
            Files.delete(folder);
        }
    }

    static Case offset(String name, long base, int max, String existing) throws Exception {
        return new Case(name, "offset", base, max, existing);
    }

    static Case time(String name, long base, int max, String existing) throws Exception {
        return new Case(name, "time", base, max, existing);
    }

    static Case transaction(String name, long base, String existing) throws Exception {
        return new Case(name, "transaction", base, 0, existing);
    }

    static void byHand() throws Exception {
        String two = "0000000000000000" + "0000000100000010";
        String three = "000000000000000500000001" + "000000000000000600000002" + "000000000000000900000009";
        for (int size : new int[] {0, 4, 7, 8, 12, 23, 24, 67, 80}) {
            offset("offset index of " + size + " bytes", 32, size, null).step("append", 35, 700).step("append", 36, 701).close();
            time("time index of " + size + " bytes", 32, size, null).step("maybe_append", 10, 35, 0).step("maybe_append", 11, 36, 0)
                .step("maybe_append", 12, 37, 1).close();
        }
        offset("offsets that do not rise", 45, 80, null).step("append", 45, 0).step("append", 45, 9).step("append", 51, 10)
            .step("append", 51, 20).step("append", 50, 20).step("append", 0, 20).step("append", 52, 5).close();
        offset("relative offsets at the edge", 1000, 80, null).step("append", 999, 1).step("append", 1000 + MOST, 7).close();
        offset("a relative offset too large", 1000, 80, null).step("append", 1000 + MOST + 1, 7).step("append", 1001, 7).close();
        offset("a full offset index", 0, 16, null).step("append", 0, 0).step("append", 1, 1).step("append", 2, 2).step("append", -1, 2).close();
        offset("truncation", 0, 80, null).step("append", 10, 1).step("append", 20, 2).step("append", 30, 3).step("truncate_to", 31)
            .step("truncate_to", 30).step("truncate_to", 15).step("append", 11, 4).step("truncate_to", 10).step("truncate_to", -5)
            .step("append", 3, 3).close();
        offset("an existing offset index", 100, 80, two).step("append", 102, 9).step("resize", 80).step("append", 102, 9)
            .step("append", 101, 9).close();
        offset("an existing offset index with a fragment", 100, 80, two + "aabbcc").step("trim").step("resize", 83).step("append", 102, 9).close();
        offset("an existing offset index with zeros behind", 100, 80, two + "00".repeat(64)).step("append", 102, 9)
            .step("truncate_to", 101).step("reset").step("append", 100, 1).close();
        offset("an empty offset index", 100, 80, "").step("append", 100, 1).step("truncate_to", 0).step("resize", 9).step("append", 100, 1).close();
        offset("sizes", 0, 80, null).step("resize", 80).step("resize", 87).step("resize", 88).step("append", 5, 5).step("append", 6, 6)
            .step("resize", 16).step("append", 7, 7).step("trim").step("resize", 1000).step("append", 7, 7).step("flush").step("trim")
            .step("reset").step("trim").step("append", 1, 1).close();
        offset("closed and opened again", 7, 80, null).step("append", 9, 1).step("reopen").step("append", 10, 2).step("resize", 80)
            .step("append", 10, 2).step("reopen").close();
        time("timestamps that do not rise", 0, 120, null).step("maybe_append", -1, 5, 0).step("maybe_append", -9, 5, 0)
            .step("maybe_append", 10, 5, 0).step("maybe_append", 10, 5, 0).step("maybe_append", 10, 6, 0)
            .step("maybe_append", 10, MOST + 9, 0).step("maybe_append", 9, 6, 0).step("maybe_append", -1, 6, 0)
            .step("maybe_append", 11, 4, 0).step("maybe_append", 9, 4, 0).step("maybe_append", 11, 5, 0).close();
        time("the first timestamp is zero", 0, 120, null).step("maybe_append", 0, 0, 0).step("maybe_append", 0, 1, 0)
            .step("maybe_append", 1, 1, 0).close();
        time("a time index full at its last slot but one", 0, 36, null).step("maybe_append", 10, 1, 0).step("maybe_append", 20, 2, 0)
            .step("maybe_append", 30, 3, 0).step("maybe_append", 20, 2, 0).step("maybe_append", 30, 3, 1).step("maybe_append", 30, 4, 1)
            .step("maybe_append", 40, 4, 1).close();
        time("time truncation", 0, 240, null).step("maybe_append", 1, 10, 0).step("maybe_append", 2, 20, 0).step("maybe_append", 3, 30, 0)
            .step("truncate_to", 31).step("truncate_to", 30).step("truncate_to", 15).step("maybe_append", 2, 11, 0)
            .step("truncate_to", 10).step("maybe_append", 1, 3, 0).close();
        time("an existing time index", 100, 120, three).step("maybe_append", 10, 110, 0).step("resize", 120).step("maybe_append", 10, 110, 0).close();
        time("an existing time index with zeros behind", 100, 120, three + "00".repeat(48)).step("maybe_append", 10, 110, 1)
            .step("reset").step("maybe_append", 10, 110, 0).close();
        time("time sizes", 0, 120, null).step("maybe_append", 5, 5, 0).step("resize", 23).step("resize", 12).step("maybe_append", 6, 6, 0)
            .step("resize", 121).step("maybe_append", 6, 6, 0).step("trim").step("reopen").step("resize", 120)
            .step("maybe_append", 7, 7, 0).close();
        transaction("no transaction", 5, null).step("flush").step("truncate_to", 0).step("reset").close();
        transaction("last offsets that do not rise", 5, null).step("append", 1, 5, 10, 5).step("append", 2, 6, 10, 6)
            .step("append", 2, 6, 9, 6).step("append", 2, 6, 11, 12).step("truncate_to", 11).step("append", 3, 6, 11, 9)
            .step("reset").step("append", 4, 5, 6, 7).close();
        transaction("transaction truncation", 0, null).step("append", 1, 0, 10, 5).step("append", 2, 6, 20, 15).step("append", 3, 7, 30, 31)
            .step("truncate_to", 31).step("truncate_to", 21).step("flush").step("truncate_to", 20).close();
    }

    /** Changes that a seed picks. Left out is what breaks Kafka's own index: a size below the entries, a time entry out of range. */
    static void random(String kind, int seed) throws Exception {
        Random random = new Random(8192 + seed);
        long base = seed % 3 == 0 ? 0 : random.nextInt(50);
        int slot = kind.equals("offset") ? 8 : 12;
        int max = slot + random.nextInt(200);
        Case each = new Case("random " + kind + " " + seed, kind, base, max, null);
        long last = base;
        long time = -1;
        for (int step = 0; step < 40; step++) {
            int choice = random.nextInt(20);
            if (each.transactions != null) {
                if (choice < 16) {
                    long end = last + random.nextInt(6) - 1;
                    each.step("append", random.nextInt(4), base + random.nextInt(40), end, base + random.nextInt(60));
                    last = Math.max(last, end);
                } else if (choice < 19) {
                    last = last - random.nextInt(12);
                    each.step("truncate_to", last);
                } else {
                    each.step("reset");
                }
                continue;
            }
            int used = slot * each.index.entries();
            if (choice < 14) {
                long offset = last + random.nextInt(5) - 1;
                if (kind.equals("offset")) {
                    each.step("append", offset, 16 * step);
                } else {
                    offset = Math.max(offset, base);
                    each.step("maybe_append", time + random.nextInt(4) - (each.index.entries() == 0 ? 0 : 1), offset, random.nextInt(4) == 0 ? 1 : 0);
                }
            } else if (choice < 16) {
                // several entries at this very offset: Kafka leaves some of them
                each.step("truncate_to", kind.equals("offset") ? last - random.nextInt(12) : last + 1);
            } else if (choice < 18) {
                each.step("resize", used + random.nextInt(100));
            } else if (choice == 18) {
                each.step(random.nextBoolean() ? "trim" : "flush");
            } else {
                each.step(random.nextInt(3) == 0 ? "reset" : "reopen");
            }
            if (each.index instanceof TimeIndex times) {
                last = times.lastEntry().offset();
                time = times.lastEntry().timestamp();
            } else {
                last = ((OffsetIndex) each.index).lastOffset();
            }
        }
        each.close();
    }
}
