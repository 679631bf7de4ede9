import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Writes log_config.json and log_config_cases.json of this folder from Kafka's own classes; README.md says
 * how to run it.
 *
 * A case is a broker's file, a topic's overrides or both, and what Kafka makes of them: the settings, or its
 * complaint.
 */
public class LogConfigVectors {
    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
    static final Map<String, ConfigDef.ConfigKey> KEYS = new TreeMap<>(LogConfig.configKeys());

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        JSON.writeValue(new File(folder, "log_config.json"), settings());
        JSON.writeValue(new File(folder, "log_config_cases.json"), cases());
    }

    static ObjectNode settings() {
        ObjectNode all = JSON.createObjectNode();
        all.put("kafka", AppInfoParser.getVersion());
        ArrayNode settings = all.putArray("settings");
        for (ConfigDef.ConfigKey key : KEYS.values()) {
            ObjectNode setting = settings.addObject();
            setting.put("name", key.name);
            setting.put("type", key.type.name());
            setting.put("default", text(key, key.defaultValue));
            setting.put("valid", key.validator == null ? null : key.validator.toString().replaceAll("\\s+", " "));
            ArrayNode synonyms = setting.putArray("synonyms");
            for (ConfigSynonym synonym : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(key.name, List.of())) {
                long factor = 1;
                if (key.type == ConfigDef.Type.LONG) {
                    factor = Long.parseLong(synonym.converter().apply("3")) / 3;
                }
                synonyms.addObject().put("name", synonym.name()).put("factor", factor);
            }
        }
        return all;
    }

    static String text(ConfigDef.ConfigKey key, Object value) {
        return ConfigDef.convertToString(value, key.type);
    }

    static ObjectNode cases() throws Exception {
        ObjectNode all = JSON.createObjectNode();
        all.put("kafka", AppInfoParser.getVersion());
        ArrayNode cases = all.putArray("cases");
        // every number at its limits and one beyond, and what is no number
        for (ConfigDef.ConfigKey key : KEYS.values()) {
            switch (key.type) {
                case INT, LONG -> {
                    for (String value : List.of("-131073", "-131072", "-3", "-2", "-1", "0", "1", "3", "4", "9", "10", "14", "17", "18", "22",
                            "23", "1048575", "1048576", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "+7",
                            "007", " 8 ", "1_000", "1e3", "0x10", "5.0", "", "five", "٣")) {
                        topic(cases, key.name, value);
                    }
                }
                case DOUBLE -> {
                    for (String value : List.of("0", "1", "0.25", "1.0000001", "-0.1", "-0.0", "1e-3", ".5", "5.", "NaN", "Infinity", "+0.5", " 0.5 ",
                            "0.5f", "0.5d", "0x1p-1", "", "half", "inf", "nan", "1_0")) {
                        topic(cases, key.name, value);
                    }
                }
                case BOOLEAN -> {
                    for (String value : List.of("true", "false", "TRUE", "False", " true ", "yes", "1", "")) {
                        topic(cases, key.name, value);
                    }
                }
                default -> { }
            }
        }
        for (String value : List.of("delete", "compact", "compact,delete", "delete,compact", " delete , compact ", "delete,delete", "", "Delete",
                "keep", "delete,", ",delete", "delete,keep", "delete compact")) {
            topic(cases, "cleanup.policy", value);
        }
        for (String value : List.of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer", "none", "ZSTD", " lz4 ", "", "brotli")) {
            topic(cases, "compression.type", value);
        }
        for (String value : List.of("CreateTime", "LogAppendTime", "NoTimestampType", "createtime", " CreateTime ", "")) {
            topic(cases, "message.timestamp.type", value);
        }
        // settings that depend on one another, and several at once
        topic(cases, "min.compaction.lag.ms", "5", "max.compaction.lag.ms", "5");
        topic(cases, "min.compaction.lag.ms", "6", "max.compaction.lag.ms", "5");
        topic(cases, "segment.bytes", "2097152", "internal.segment.bytes", "4096");
        topic(cases, "segment.bytes", "4096", "internal.segment.bytes", "4096");
        topic(cases, "internal.segment.bytes", "4096");
        topic(cases, "internal.segment.bytes", "3000000");
        topic(cases, "segment.ms", "1000", "segment.jitter.ms", "5000");
        topic(cases, "segment.ms", "1000", "retention.ms", "-1", "cleanup.policy", "compact", "compression.type", "zstd", "preallocate", "true");
        topic(cases, "segmnt.bytes", "4096");
        topic(cases, "log.segment.bytes", "2097152");
        topic(cases, "message.format.version", "3.0");
        topic(cases, "leader.replication.throttled.replicas", "*");
        // a broker's file
        broker(cases);
        broker(cases, "log.roll.ms", "1234", "log.roll.hours", "5");
        broker(cases, "log.roll.hours", "5");
        broker(cases, "log.roll.hours", "0");
        broker(cases, "log.roll.hours", "2147483647");
        broker(cases, "log.roll.hours", "2147483648");
        broker(cases, "log.roll.ms", "0");
        broker(cases, "log.roll.jitter.ms", "12", "log.roll.jitter.hours", "1");
        broker(cases, "log.roll.jitter.hours", "2");
        broker(cases, "log.roll.jitter.hours", "-1");
        broker(cases, "log.retention.ms", "77", "log.retention.minutes", "5", "log.retention.hours", "3");
        broker(cases, "log.retention.minutes", "5", "log.retention.hours", "3");
        broker(cases, "log.retention.hours", "3");
        broker(cases, "log.retention.ms", "-1");
        broker(cases, "log.retention.ms", "-5");
        broker(cases, "log.retention.minutes", "-1");
        broker(cases, "log.retention.hours", "-1");
        broker(cases, "log.retention.ms", "0");
        broker(cases, "log.retention.minutes", "0");
        broker(cases, "log.retention.hours", "0");
        broker(cases, "log.retention.bytes", "123456");
        broker(cases, "log.flush.interval.ms", "50", "log.flush.scheduler.interval.ms", "70");
        broker(cases, "log.flush.scheduler.interval.ms", "70");
        broker(cases, "log.flush.interval.messages", "10000");
        broker(cases, "log.flush.interval.ms", "50", "log.flush.scheduler.interval.ms", "-1");
        broker(cases, "log.flush.scheduler.interval.ms", "-1");
        broker(cases, "log.flush.interval.ms", "-1");
        broker(cases, "log.roll.ms", "5", "log.roll.hours", "0");
        broker(cases, "log.roll.ms", "5", "log.roll.hours", "many");
        broker(cases, "log.roll.jitter.ms", "-1");
        broker(cases, "log.retention.ms", "5", "log.retention.hours", "0");
        broker(cases, "log.retention.bytes", "-7");
        broker(cases, "message.max.bytes", "-1");
        broker(cases, "log.index.size.max.bytes", "3");
        broker(cases, "log.cleanup.policy", "");
        broker(cases, "log.cleanup.policy", "keep");
        broker(cases, "compression.type", "none");
        broker(cases, "log.preallocate", "yes");
        broker(cases, "log.message.timestamp.type", "now");
        broker(cases, "log.cleaner.min.cleanable.ratio", "1.5");
        broker(cases, "log.segment.bytes", "1048575");
        broker(cases, "log.segment.bytes", "1048576");
        broker(cases, "log.index.size.max.bytes", "4096", "log.index.interval.bytes", "512", "message.max.bytes", "2000000");
        broker(cases, "log.cleanup.policy", "compact", "log.cleaner.min.cleanable.ratio", "0.1", "log.cleaner.delete.retention.ms", "9",
            "log.cleaner.min.compaction.lag.ms", "8", "log.cleaner.max.compaction.lag.ms", "10", "log.segment.delete.delay.ms", "11");
        broker(cases, "log.cleaner.min.compaction.lag.ms", "11", "log.cleaner.max.compaction.lag.ms", "10");
        broker(cases, "compression.type", "gzip", "compression.gzip.level", "4", "compression.lz4.level", "5", "compression.zstd.level", "-6");
        broker(cases, "log.preallocate", "true", "min.insync.replicas", "2", "unclean.leader.election.enable", "true");
        broker(cases, "log.message.timestamp.type", "LogAppendTime", "log.message.timestamp.before.max.ms", "1",
            "log.message.timestamp.after.max.ms", "2");
        broker(cases, "num.io.threads", "8", "segment.bytes", "5", "no.such.key", "1", "retention.ms", "abc");
        broker(cases, "internal.segment.bytes", "4096");
        broker(cases, "log.roll.ms", "abc");
        both(cases, List.of("log.segment.bytes", "2000000", "log.roll.hours", "1", "log.retention.hours", "2"), List.of("segment.ms", "99"));
        both(cases, List.of("log.cleanup.policy", "compact"), List.of("cleanup.policy", "delete"));
        both(cases, List.of("log.cleaner.min.compaction.lag.ms", "8"), List.of("max.compaction.lag.ms", "7"));
        both(cases, List.of("log.segment.bytes", "2000000"), List.of("internal.segment.bytes", "777"));
        return all;
    }

    static void topic(ArrayNode cases, String... pairs) throws Exception {
        add(cases, null, properties(List.of(pairs)));
    }

    static void broker(ArrayNode cases, String... pairs) throws Exception {
        add(cases, properties(List.of(pairs)), null);
    }

    static void both(ArrayNode cases, List<String> broker, List<String> topic) throws Exception {
        add(cases, properties(broker), properties(topic));
    }

    static Properties properties(List<String> pairs) {
        Properties properties = new Properties();
        for (int i = 0; i < pairs.size(); i += 2) {
            properties.put(pairs.get(i), pairs.get(i + 1));
        }
        return properties;
    }

    static void add(ArrayNode cases, Properties broker, Properties topic) throws Exception {
        ObjectNode row = cases.addObject();
        if (broker != null) {
            row.set("broker", JSON.valueToTree(new TreeMap<>(broker)));
        }
        if (topic != null) {
            row.set("topic", JSON.valueToTree(new TreeMap<>(topic)));
        }
        try {
            Map<String, Object> defaults = broker == null ? Map.of() : brokerDefaults(broker);
            Properties overrides = topic == null ? new Properties() : topic;
            Map<String, String> named = new TreeMap<>();
            overrides.forEach((key, value) -> named.put((String) key, (String) value));
            LogConfig.validateNames(named);
            LogConfig.validate(Map.of(), named, defaults, false);
            LogConfig config = LogConfig.fromProps(defaults, overrides);
            ObjectNode changed = row.putObject("settings");
            for (ConfigDef.ConfigKey key : KEYS.values()) {
                String value = text(key, config.values().get(key.name));
                String usual = text(key, key.defaultValue);
                if (value != null && !value.equals(usual)) {
                    changed.put(key.name, value);
                }
            }
            row.put("segment_size", config.segmentSize());
            row.put("max_segment_ms", config.maxSegmentMs());
            row.put("init_file_size", config.initFileSize());
        } catch (ReflectiveOperationException | RuntimeException error) {
            Throwable cause = error instanceof java.lang.reflect.InvocationTargetException ? error.getCause() : error;
            row.put("error", String.valueOf(cause.getMessage()));
        }
    }

    /** As a broker reads its file: `new KafkaConfig(properties).extractLogConfigMap()`, found by name to compile without Scala. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> brokerDefaults(Properties broker) throws ReflectiveOperationException {
        Properties properties = new Properties();
        properties.putAll(Map.of("process.roles", "broker", "node.id", "1", "controller.quorum.voters", "2@localhost:9093",
            "controller.listener.names", "CONTROLLER", "listeners", "PLAINTEXT://localhost:9092"));
        properties.putAll(broker);
        Class<?> type = Class.forName("kafka.server.KafkaConfig");
        Object config = type.getMethod("fromProps", Properties.class, boolean.class).invoke(null, properties, false);
        Method extract = type.getMethod("extractLogConfigMap");
        return (Map<String, Object>) extract.invoke(config);
    }
}
