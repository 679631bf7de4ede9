import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes internal_topics.jsonl.gz of this folder: records of every type and version of Kafka's internal
 * topics, with random values, some of them damaged, and the texts of DumpLogSegments for them; README.md says
 * how to run it.
 */
public class InternalTopicVectors {
    static final Random RANDOM = new Random(431);
    static final ObjectMapper JSON = new ObjectMapper();
    static final List<String> TEXTS = List.of("", "orders", "group-1", "a\"b\\c", "tab\tnl\ncr\rbs\bff\f", "\u0000\u001b\u001f\u007f\u0085", "é€", "\ud83d\ude00 x",
        "\u2028</script>", "consumer", "range", "1");
    static PrintStream out;
    static long offset;

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(new GZIPOutputStream(new FileOutputStream(new File(arguments[0], "internal_topics.jsonl.gz"))), false, "UTF-8");
        for (var type : org.apache.kafka.coordinator.group.generated.CoordinatorRecordType.values()) {
            coordinator("offsets", "OffsetsMessageParser", type.newRecordKey(), type.newRecordValue());
        }
        for (var type : org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType.values()) {
            coordinator("transaction-log", "TransactionLogMessageParser", type.newRecordKey(), type.newRecordValue());
        }
        for (var type : org.apache.kafka.coordinator.share.generated.CoordinatorRecordType.values()) {
            coordinator("share-group-state", "ShareGroupStateMessageParser", type.newRecordKey(), type.newRecordValue());
        }
        for (var type : org.apache.kafka.common.metadata.MetadataRecordType.values()) {
            metadata("cluster-metadata", "ClusterMetadataLogMessageParser", type.newMetadataRecord());
        }
        for (var type : org.apache.kafka.server.log.remote.metadata.storage.generated.MetadataRecordType.values()) {
            metadata("remote-log-metadata", "RemoteMetadataLogMessageParser", type.newMetadataRecord());
        }
        control((short) 2, new LeaderChangeMessage());
        control((short) 3, new SnapshotHeaderRecord());
        control((short) 4, new SnapshotFooterRecord());
        control((short) 5, new KRaftVersionRecord());
        control((short) 6, new VotersRecord());
        for (short type : new short[] {0, 1, 7, -1}) {
            byte[] key = ByteBuffer.allocate(4).putShort((short) 0).putShort(type).array();
            control(key, ByteBuffer.allocate(6).putShort((short) 0).putInt(77).array());
        }
        out.close();
    }

    static void coordinator(String name, String parser, ApiMessage key, ApiMessage value) throws Exception {
        for (short version = value.lowestSupportedVersion(); version <= value.highestSupportedVersion(); version++) {
            for (int n = 0; n < 8; n++) {
                byte[] k = MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) filled(key.getClass(), (short) 0));
                byte[] v = MessageUtil.toVersionPrefixedBytes(version, filled(value.getClass(), version));
                write(name, parser, k, v);
                if (n == 0) {
                    write(name, parser, k, null);
                    write(name, parser, k, Arrays.copyOf(v, v.length + 3));
                    write(name, parser, Arrays.copyOf(k, k.length + 3), v);
                    write(name, parser, k, prefixed((short) 9, v));
                    write(name, parser, k, new byte[1]);
                    write(name, parser, prefixed((short) 99, k), v);
                    write(name, parser, new byte[1], v);
                    write(name, parser, null, v);
                }
                write(name, parser, k, damaged(v));
                write(name, parser, n % 4 == 0 ? damaged(k) : k, damaged(v));
            }
        }
    }

    static void metadata(String name, String parser, ApiMessage value) throws Exception {
        for (short version = value.lowestSupportedVersion(); version <= value.highestSupportedVersion(); version++) {
            for (int n = 0; n < 8; n++) {
                byte[] v = framed(filled(value.getClass(), version), version);
                write(name, parser, null, v);
                if (n == 0) {
                    write(name, parser, new byte[] {1, 2}, null);
                    write(name, parser, null, new byte[0]);
                    write(name, parser, null, Arrays.copyOf(v, v.length + 3));
                    for (int at = 0; at < 3; at++) {
                        for (byte number : new byte[] {0, 2, 9, 99, -1}) {
                            byte[] changed = v.clone();
                            changed[at] = number;
                            write(name, parser, null, changed);
                        }
                    }
                }
                write(name, parser, null, damaged(v));
                write(name, parser, null, damaged(v));
            }
        }
    }

    static byte[] framed(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ApiMessageAndVersion both = new ApiMessageAndVersion(message, version);
        ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(both, cache));
        MetadataRecordSerde.INSTANCE.write(both, cache, new ByteBufferAccessor(buffer));
        return buffer.array();
    }

    static void control(short type, ApiMessage message) throws Exception {
        byte[] key = ByteBuffer.allocate(4).putShort((short) 0).putShort(type).array();
        for (short version = message.lowestSupportedVersion(); version <= message.highestSupportedVersion(); version++) {
            for (int n = 0; n < 6; n++) {
                Message filled = filled(message.getClass(), version);
                byte[] value = MessageUtil.toByteBufferAccessor(filled, version).buffer().array();
                // the text depends on the version that is in the message
                value[0] = 0;
                value[1] = (byte) (n < 4 ? version : n);
                control(key, value);
                control(key, damaged(value));
            }
        }
    }

    static void control(byte[] key, byte[] value) throws Exception {
        ObjectNode row = row("control", key, value);
        Method print = Class.forName("org.apache.kafka.tools.DumpLogSegments").getDeclaredMethod("printControlRecord", Record.class);
        print.setAccessible(true);
        PrintStream stdout = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            print.invoke(null, record(key, value));
            row.put("payload", printed.toString(StandardCharsets.UTF_8));
        } catch (InvocationTargetException error) {
            row.put("error", String.valueOf(error.getCause().getMessage()));
        } finally {
            System.setOut(stdout);
        }
        out.println(JSON.writeValueAsString(row));
    }

    static void write(String name, String parser, byte[] key, byte[] value) throws Exception {
        ObjectNode row = row(name, key, value);
        Constructor<?> constructor = Class.forName("org.apache.kafka.tools.DumpLogSegments$" + parser).getDeclaredConstructor();
        constructor.setAccessible(true);
        Object instance = constructor.newInstance();
        Method parse = Class.forName("org.apache.kafka.tools.DumpLogSegments$MessageParser").getMethod("parse", Record.class);
        parse.setAccessible(true);
        try {
            Object result = parse.invoke(instance, record(key, value));
            row.put("key", part(result, "key"));
            row.put("payload", part(result, "value"));
        } catch (InvocationTargetException error) {
            row.put("error", error.getCause().getMessage());
        }
        out.println(JSON.writeValueAsString(row));
        offset++;
    }

    static String part(Object result, String name) throws Exception {
        Method method = result.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return ((Optional<?>) method.invoke(result)).map(Object::toString).orElse(null);
    }

    static ObjectNode row(String name, byte[] key, byte[] value) {
        ObjectNode row = JSON.createObjectNode();
        row.put("parser", name);
        row.put("offset", offset);
        row.put("key_bytes", key == null ? null : Base64.getEncoder().encodeToString(key));
        row.put("value_bytes", value == null ? null : Base64.getEncoder().encodeToString(value));
        return row;
    }

    static Record record(byte[] key, byte[] value) {
        return MemoryRecords.withRecords(offset, Compression.NONE, new SimpleRecord(0L, key, value)).records().iterator().next();
    }

    static byte[] prefixed(short number, byte[] bytes) {
        byte[] changed = bytes.clone();
        ByteBuffer.wrap(changed).putShort(number);
        return changed;
    }

    /** Cut, or with one to three other bytes. */
    static byte[] damaged(byte[] bytes) {
        if (bytes.length == 0 || RANDOM.nextInt(3) == 0) {
            return Arrays.copyOf(bytes, RANDOM.nextInt(bytes.length + 1));
        }
        byte[] changed = bytes.clone();
        for (int n = RANDOM.nextInt(3); n >= 0; n--) {
            int at = RANDOM.nextInt(changed.length);
            changed[at] = RANDOM.nextBoolean() ? (byte) RANDOM.nextInt() : (byte) (changed[at] ^ 1 << RANDOM.nextInt(8));
        }
        return changed;
    }

    /** A message with random values in the fields that the version has. */
    static <T extends Message> T filled(Class<T> type, short version) throws Exception {
        T message = type.getDeclaredConstructor().newInstance();
        Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
        for (var bound : schemas[version].fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Field field : tagged.fields().values()) {
                    if (RANDOM.nextBoolean()) {
                        set(message, field, version);
                    }
                }
            } else {
                set(message, bound.def, version);
            }
        }
        return message;
    }

    static void set(Message message, Field field, short version) throws Exception {
        String name = "set" + field.name.replace("_", "");
        for (Method setter : message.getClass().getMethods()) {
            if (setter.getName().equalsIgnoreCase(name)) {
                setter.invoke(message, value(setter.getGenericParameterTypes()[0], field, version));
                return;
            }
        }
        throw new IllegalStateException("no setter for " + field.name + " of " + message.getClass());
    }

    static Object value(Type type, Field field, short version) throws Exception {
        if (field.type.isNullable() && RANDOM.nextInt(3) == 0) {
            return null;
        }
        if (field.name.equals("subscription") || field.name.equals("assignment") && type == byte[].class) {
            short protocol = (short) RANDOM.nextInt(4);
            Class<? extends Message> kind = field.name.equals("subscription") ? ConsumerProtocolSubscription.class : ConsumerProtocolAssignment.class;
            byte[] bytes = MessageUtil.toVersionPrefixedBytes(protocol, filled(kind, protocol));
            return RANDOM.nextInt(4) == 0 ? damaged(bytes) : bytes;
        }
        if (field.name.equals("protocol_type") && RANDOM.nextInt(4) > 0) {
            return "consumer";
        }
        if (field.name.endsWith("_state") && type == byte.class) {
            return (byte) RANDOM.nextInt(4);
        }
        if ((field.name.equals("start_offset") || field.name.equals("end_offset")) && RANDOM.nextInt(8) > 0) {
            return field.name.equals("start_offset") ? RANDOM.nextInt(9) : 9L + RANDOM.nextInt(99);
        }
        if (type instanceof ParameterizedType list) {
            return elements(new ArrayList<>(), list.getActualTypeArguments()[0], field, version);
        }
        Class<?> plain = (Class<?>) type;
        if (Collection.class.isAssignableFrom(plain)) {
            @SuppressWarnings("unchecked")
            Collection<Object> collection = (Collection<Object>) plain.getDeclaredConstructor().newInstance();
            return elements(collection, ((ParameterizedType) plain.getGenericSuperclass()).getActualTypeArguments()[0], field, version);
        }
        return element(plain, field, version);
    }

    static Collection<Object> elements(Collection<Object> elements, Type type, Field field, short version) throws Exception {
        for (int n = RANDOM.nextInt(3); n > 0; n--) {
            elements.add(element((Class<?>) type, field, version));
        }
        return elements;
    }

    static Object element(Class<?> type, Field field, short version) throws Exception {
        if (Message.class.isAssignableFrom(type)) {
            return filled(type.asSubclass(Message.class), version);
        }
        if (type == String.class) {
            return TEXTS.get(RANDOM.nextInt(TEXTS.size()));
        }
        if (type == byte[].class || type == ByteBuffer.class) {
            byte[] bytes = new byte[RANDOM.nextInt(8)];
            RANDOM.nextBytes(bytes);
            return type == byte[].class ? bytes : (Object) ByteBuffer.wrap(bytes);
        }
        if (type == Uuid.class) {
            return RANDOM.nextInt(4) == 0 ? Uuid.ZERO_UUID : new Uuid(RANDOM.nextLong(), RANDOM.nextLong());
        }
        if (type == double.class) {
            return List.of(0.0, 1.0, -2.5, 1e7, 1048576.0, 0.001, 1e-9, 1e300, Double.NaN, Double.NEGATIVE_INFINITY).get(RANDOM.nextInt(10));
        }
        if (type == boolean.class) {
            return RANDOM.nextBoolean();
        }
        if (field.type == org.apache.kafka.common.protocol.types.Type.UINT16) {
            return RANDOM.nextInt(65536);
        }
        long number = RANDOM.nextBoolean() ? RANDOM.nextInt(4) - 1 : RANDOM.nextLong();
        return type == byte.class || type == Byte.class ? (Object) (byte) number
            : type == short.class || type == Short.class ? (Object) (short) number
            : type == int.class || type == Integer.class ? (Object) (int) number : (Object) number;
    }
}
