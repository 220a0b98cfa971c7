import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writing records, and reading them without a group. */
final class Records {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private final String bootstrap;

    Records(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void addTo(Map<String, Serve.Command> commands) {
        commands.put("produce", this::produce);
        commands.put("consume", this::consume);
        commands.put("walk", this::walk);
        commands.put("offset_for_time", this::offsetForTime);
    }

    private ObjectNode produce(JsonNode asked) throws Exception {
        Properties settings = Driver.settings(bootstrap);
        settings.remove("default.api.timeout.ms");
        boolean idempotent = asked.get("idempotent").booleanValue();
        settings.put("acks", asked.get("acks").textValue());
        settings.put("compression.type", asked.get("compression").textValue());
        settings.put("enable.idempotence", idempotent);
        settings.put("max.in.flight.requests.per.connection", idempotent ? 5 : 1);  // either keeps the order
        settings.put("max.request.size", 16 << 20);
        settings.put("request.timeout.ms", 10_000);
        settings.put("delivery.timeout.ms", 30_000);
        settings.put("max.block.ms", 30_000);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        var bytes = new ByteArraySerializer();
        try (var producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (JsonNode record : asked.get("records")) {
                sent.add(producer.send(toRecord(asked, record)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
        return Driver.JSON.createObjectNode().put("count", sent.size());
    }

    private static ProducerRecord<byte[], byte[]> toRecord(JsonNode asked, JsonNode record) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.path("headers")) {
            headers.add(new RecordHeader(header.get(0).textValue(), header.get(1).binaryValue()));
        }
        Long timestamp = record.hasNonNull("timestamp") ? record.get("timestamp").longValue() : null;
        byte[] key = record.path("key").binaryValue();
        byte[] value = record.path("value").binaryValue();
        int partition = asked.get("partition").intValue();
        return new ProducerRecord<>(asked.get("topic").textValue(), partition, timestamp, key, value, headers);
    }

    private ObjectNode consume(JsonNode asked) throws TimeoutException {
        ObjectNode answer = Driver.JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        int count = asked.get("count").intValue();
        TopicPartition partition = partition(asked);
        try (var consumer = reader(500)) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, asked.get("offset").longValue());
            for (ConsumerRecord<byte[], byte[]> record : read(consumer, count).subList(0, count)) {
                ObjectNode row = records.addObject();
                row.put("offset", record.offset()).put("timestamp", record.timestamp());
                row.put("key", record.key()).put("value", record.value());
                ArrayNode headers = row.putArray("headers");
                record.headers().forEach(header -> headers.addArray().add(header.key()).add(header.value()));
            }
        }
        return answer;
    }

    private ObjectNode walk(JsonNode asked) throws TimeoutException {
        ObjectNode answer = Driver.JSON.createObjectNode();
        TopicPartition partition = partition(asked);
        List<TopicPartition> one = List.of(partition);
        try (var consumer = reader(1)) {  // one record for each poll: never more than asked for
            consumer.assign(one);
            consumer.seek(partition, 0);
            putOffsets(answer, "first", read(consumer, 10));
            consumer.seek(partition, 3);
            putOffsets(answer, "sought", read(consumer, 5));
            consumer.pause(one);
            int paused = 0;
            for (int poll = 0; poll < 4; poll++) {
                paused += consumer.poll(Duration.ofMillis(250)).count();
            }
            answer.put("paused", paused);
            consumer.resume(one);
            putOffsets(answer, "resumed", read(consumer, 5));
        }
        return answer;
    }

    private ObjectNode offsetForTime(JsonNode asked) {
        TopicPartition partition = partition(asked);
        try (var consumer = reader(1)) {
            OffsetAndTimestamp found =
                    consumer.offsetsForTimes(Map.of(partition, asked.get("ms").longValue())).get(partition);
            return Driver.JSON.createObjectNode().put("offset", found == null ? -1 : found.offset());
        }
    }

    private KafkaConsumer<byte[], byte[]> reader(int pollRecords) {
        Properties settings = Driver.settings(bootstrap);
        settings.put("auto.offset.reset", "none");
        settings.put("fetch.max.wait.ms", 100);  // closing waits for the fetch that is under way
        settings.put("max.poll.records", pollRecords);
        var bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(settings, bytes, bytes);
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, int count)
            throws TimeoutException {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long until = System.nanoTime() + PATIENCE.toNanos();
        while (found.size() < count) {
            if (System.nanoTime() > until) {
                throw new TimeoutException("only " + found.size() + " of " + count + " records came");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    private static TopicPartition partition(JsonNode asked) {
        return new TopicPartition(asked.get("topic").textValue(), asked.get("partition").intValue());
    }

    private static void putOffsets(ObjectNode answer, String name, List<ConsumerRecord<byte[], byte[]>> records) {
        ArrayNode offsets = answer.putArray(name);
        records.forEach(record -> offsets.add(record.offset()));
    }
}
