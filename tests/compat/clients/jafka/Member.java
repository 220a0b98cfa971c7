import com.sohu.jafka.consumer.Consumer;
import com.sohu.jafka.consumer.ConsumerConfig;
import com.sohu.jafka.consumer.ConsumerConnector;
import com.sohu.jafka.consumer.MessageStream;
import com.sohu.jafka.producer.Producer;
import com.sohu.jafka.producer.ProducerConfig;
import com.sohu.jafka.producer.StringProducerData;
import com.sohu.jafka.producer.serializer.StringDecoder;
import com.sohu.jafka.producer.serializer.StringEncoder;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.log4j.BasicConfigurator;
import org.apache.log4j.ConsoleAppender;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.PatternLayout;

/**
 * `consume ZOOKEEPER GROUP TOPIC [ID]` prints what it gets, as the member GROUP_ID; `produce BROKERS CODEC TOPIC TEXT...`
 * sends one set. Its log goes to stderr.
 */
final class Member {
    public static void main(String[] given) throws Exception {
        BasicConfigurator.configure(new ConsoleAppender(new PatternLayout("%d %p %c{1}: %m%n"), "System.err"));
        Logger.getRootLogger().setLevel(Level.INFO);
        if (given[0].equals("consume")) {
            consume(given[1], given[2], given[3], given.length > 4 ? given[4] : null);
        } else {
            produce(given[1], given[2], given[3], List.of(given).subList(4, given.length));
        }
    }

    private static void consume(String zookeeper, String group, String topic, String id) throws Exception {
        Properties settings = new Properties();
        if (id != null) {
            settings.put("consumerid", id);
        }
        // On a busy machine others take long to let go; and two that get into each other's way would do so again.
        settings.put("rebalance.retries.max", "1000");
        settings.put("rebalance.backoff.ms", String.valueOf(200 + ThreadLocalRandom.current().nextInt(300)));
        settings.put("zk.connect", zookeeper);
        settings.put("groupid", group);
        settings.put("zk.sessiontimeout.ms", "3000");
        settings.put("zk.synctime.ms", "200");
        settings.put("autocommit.interval.ms", "200");
        settings.put("backoff.increment.ms", "50");
        ConsumerConnector connector = Consumer.create(new ConsumerConfig(settings));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                connector.close();
            } catch (Exception error) {
                System.err.println(error);
            }
        }));
        Map<String, List<MessageStream<String>>> streams =
            connector.createMessageStreams(Map.of(topic, 1), new StringDecoder());
        for (String text : streams.get(topic).get(0)) {
            System.out.println(text);
        }
    }

    private static void produce(String brokers, String codec, String topic, List<String> texts) throws Exception {
        Properties settings = new Properties();
        settings.put("broker.list", brokers);
        settings.put("compression.codec", codec);
        settings.put("serializer.class", StringEncoder.class.getName());
        Producer<String, String> producer = new Producer<>(new ProducerConfig(settings));
        producer.send(new StringProducerData(topic, topic, texts));
        producer.close();
    }
}
