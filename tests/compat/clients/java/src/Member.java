import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group: reads, commits, tells; leaves on SIGTERM. */
final class Member implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");
    private static volatile boolean running = true;
    private static volatile boolean closed = false;

    /** Where to commit, of what was read and is not committed. */
    private final Map<TopicPartition, OffsetAndMetadata> due =
            new TreeMap<>((one, other) -> Integer.compare(one.partition(), other.partition()));

    private Member() {}

    static void run(JsonNode asked) {
        Properties settings = settings(asked);
        Thread main = Thread.currentThread();
        // After SIGTERM the exit status is Java's own, unless a hook ends the process itself.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> end(main)));
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            var member = new Member();
            consumer.subscribe(List.of(asked.get("topic").textValue()), member);
            while (running) {
                member.step(consumer);
            }
        }
        Driver.tell(Driver.JSON.createObjectNode().put("closed", true));
        closed = true;
    }

    private static void end(Thread main) {
        running = false;
        try {
            main.join(30_000);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(closed ? 0 : 1);
    }

    private void step(KafkaConsumer<byte[], byte[]> consumer) {
        for (var record : consumer.poll(Duration.ofMillis(200))) {
            ObjectNode line = Driver.JSON.createObjectNode();
            line.putArray("read").add(record.partition()).add(record.offset());
            Driver.tell(line);
            var partition = new TopicPartition(record.topic(), record.partition());
            due.put(partition, new OffsetAndMetadata(record.offset() + 1));
        }
        if (due.isEmpty()) {
            return;
        }
        ObjectNode line = Driver.JSON.createObjectNode();
        try {
            consumer.commitSync(due);
            ObjectNode committed = line.putObject("committed");
            due.forEach((partition, position) ->
                    committed.put(Integer.toString(partition.partition()), position.offset()));
            due.clear();
        } catch (ApiException | CommitFailedException refused) {
            line.put("refused", Serve.name(refused)); // tried again in the next turn
        }
        Driver.tell(line);
    }

    private static Properties settings(JsonNode asked) {
        Properties settings = Driver.settings(asked.get("bootstrap").textValue());
        settings.put("group.id", asked.get("group").textValue());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("max.poll.records", 20);
        if (!asked.path("instance").asText("").isEmpty()) {
            settings.put("group.instance.id", asked.get("instance").textValue());
        }
        String strategy = asked.path("strategy").asText("range");
        if (asked.path("protocol").asText("classic").equals("consumer")) {
            settings.put("group.protocol", "consumer");  // sessions, heartbeats and assignors are the broker's there
            return settings;
        }
        if (!ASSIGNORS.containsKey(strategy)) {
            System.err.println("kafka-clients has no assignor called " + strategy);
            System.exit(3);
        }
        settings.put("session.timeout.ms", asked.path("session").asInt(6000));
        settings.put("heartbeat.interval.ms", 300);
        settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + ASSIGNORS.get(strategy));
        return settings;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tell("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        due.keySet().removeAll(partitions);
        tell("revoked", partitions);
    }

    private static void tell(String event, Collection<TopicPartition> partitions) {
        ObjectNode line = Driver.JSON.createObjectNode();
        ArrayNode numbers = line.putArray(event);
        partitions.stream().map(TopicPartition::partition).sorted().forEach(numbers::add);
        Driver.tell(line);
    }
}
