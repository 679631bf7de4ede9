package cordwood.bench;

import org.apache.kafka.common.utils.AppInfoParser;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;

/**
 * Kafka's own classes, timed, a turn a line: a word and its arguments in, {@code NAME=NUMBER ...} out, or
 * {@code error=...}.
 *
 * <pre>
 * segment  DIR BATCHES COUNT INTERVAL KEEP     LogSegment.append into an empty segment
 * leader   DIR BATCHES COUNT INTERVAL KEEP     UnifiedLog.appendAsLeader into an empty log
 * follower DIR BATCHES COUNT INTERVAL KEEP     UnifiedLog.appendAsFollower into an empty log
 * recover  DIR INTERVAL                        LogSegment.recover of the segment 0
 * idempotent DIR BATCHES COUNT INTERVAL KEEP PRODUCERS   UnifiedLog.appendAsLeader of so many producers' batches
 * producers DIR BATCH                          UnifiedLog.create; a batch is appended and the log closed afterwards, not timed
 * compact  DIR SEGMENT_BYTES MAP_BYTES NOW     LogCleanerManager.grabFilthiestCompactedLog, Cleaner.doClean
 *
 * write-index KIND FILE ENTRIES SEED           an index of that many entries; not timed
 * write-log   DIR BATCH_BYTES BYTES CODEC      the segment 0; not timed
 *
 * warm-up  MILLIS OFFSET_INDEX TIME_INDEX      look-ups in both index classes, until the time is over
 * open     KIND PATH...                        the indexes or logs of the following turns
 * targets  FILE                                the targets of the following turns, 8 bytes each
 * answers  FILE                                two numbers of each answer, 8 bytes each
 * look-up  MODE THREADS PASSES                 passes over the targets
 *
 * headers  DIR CHECKED PASSES                  every batch's header, or with {@code true} every batch's checksum
 * columns  DIR SOURCE COLUMNS PASSES           every record, a batch ({@code file}) or 1 MiB ({@code fetched}) a read: offset and
 *                                              timestamp, with {@code all} also key and value
 * contents DIR                                 a hash of all of them; not timed
 * </pre>
 *
 * BATCHES is a file of v2 batches of one record, which are appended again and again, COUNT in all, with
 * rising offsets. What was written stays only where KEEP is true: closing a log in order syncs it, which
 * takes long.
 */
public final class Turns {
    private static final LookUpTurns LOOK_UPS = new LookUpTurns();

    private Turns() { }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        answers.println("version=" + AppInfoParser.getVersion());
        BufferedReader turns = new BufferedReader(new InputStreamReader(System.in));
        for (String line = turns.readLine(); line != null; line = turns.readLine()) {
            try {
                answers.println(turn(line.split("\t")));
            } catch (Throwable e) {
                e.printStackTrace();
                answers.println("error=" + e);
            }
            answers.flush();
        }
        System.exit(0);
    }

    private static String turn(String[] words) throws Exception {
        return switch (words[0]) {
            case "segment", "leader", "follower" -> Appends.append(words);
            case "idempotent" -> Producers.append(words);
            case "producers" -> Producers.open(words);
            case "compact" -> Compactions.compact(words);
            case "recover" -> Appends.recover(words);
            case "write-index" -> Fixtures.index(words);
            case "write-log" -> Fixtures.log(words);
            case "headers" -> Scans.headers(words);
            case "columns" -> Scans.columns(words);
            case "contents" -> Scans.contents(words);
            default -> LOOK_UPS.turn(words);
        };
    }
}
