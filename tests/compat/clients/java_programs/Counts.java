import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Counts the records of each key in a store, and in a store of windows of a day, and writes both counts behind every record.
 * Runs until it is killed. Arguments: bootstrap, application id, directory of the state, input topic, output topic.
 */
public final class Counts {
    private Counts() {}

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", arguments[2]);
        settings.put("commit.interval.ms", "200");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "6000");
        var builder = new StreamsBuilder();
        var keyed = builder.stream(arguments[3], Consumed.with(Serdes.String(), Serdes.String()))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        keyed.count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("all")).toStream()
                .map((key, count) -> new KeyValue<>(key, "all " + count))
                .to(arguments[4], Produced.with(Serdes.String(), Serdes.String()));
        keyed.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofDays(1)))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("daily")).toStream()
                .map((window, count) -> new KeyValue<>(window.key(), "daily " + count))
                .to(arguments[4], Produced.with(Serdes.String(), Serdes.String()));
        new KafkaStreams(builder.build(), settings).start();
    }
}
