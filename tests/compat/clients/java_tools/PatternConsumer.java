import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads the topics that match a pattern, which the broker looks for (KIP-848), and prints each record, until it is ended. */
public final class PatternConsumer {
    private PatternConsumer() {}

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("group.protocol", "consumer");
        settings.put("auto.offset.reset", "earliest");
        var strings = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, strings, strings)) {
            consumer.subscribe(new SubscriptionPattern(arguments[2]));
            while (true) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(record.topic() + " " + record.value());
                }
            }
        }
    }
}
