package cordwood.bench;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.util.Optional;

/** A log as a broker opens it after a clean stop: producer ids do not expire, transactions are not verified with a coordinator. */
final class Logs {
    static final int TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000;

    private Logs() { }

    static UnifiedLog open(File dir, LogConfig config, KafkaScheduler scheduler) throws IOException {
        return UnifiedLog.create(dir, config, 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM, TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE, new LogDirFailureChannel(1), true, Optional.empty());
    }

    static KafkaScheduler scheduler() {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        return scheduler;
    }
}
