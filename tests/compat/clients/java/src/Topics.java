import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Topics: their making, their settings, their end. */
final class Topics {
    private final Admin admin;

    Topics(Admin admin) {
        this.admin = admin;
    }

    void addTo(Map<String, Serve.Command> commands) {
        commands.put("create_topic", this::create);
        commands.put("alter_topic", this::alter);
        commands.put("topic", this::show);
        commands.put("add_partitions", this::addPartitions);
        commands.put("delete_records", this::deleteRecords);
        commands.put("delete_topic", this::delete);
    }

    private ObjectNode create(JsonNode asked) throws Exception {
        NewTopic topic = new NewTopic(name(asked), Optional.of(asked.get("partitions").intValue()), Optional.empty());
        admin.createTopics(List.of(topic.configs(configs(asked)))).all().get();
        return Driver.JSON.createObjectNode();
    }

    private ObjectNode alter(JsonNode asked) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        configs(asked).forEach(
                (name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(resource(asked), changes)).all().get();
        return Driver.JSON.createObjectNode();
    }

    private ObjectNode show(JsonNode asked) throws Exception {
        var description = admin.describeTopics(List.of(name(asked))).allTopicNames().get().get(name(asked));
        var configs = admin.describeConfigs(List.of(resource(asked))).all().get().get(resource(asked));
        return Driver.JSON.createObjectNode()
                .put("partitions", description.partitions().size())
                .put("value", configs.get(asked.get("config").textValue()).value());
    }

    private ObjectNode addPartitions(JsonNode asked) throws Exception {
        var more = NewPartitions.increaseTo(asked.get("total").intValue());
        admin.createPartitions(Map.of(name(asked), more)).all().get();
        return Driver.JSON.createObjectNode();
    }

    private ObjectNode deleteRecords(JsonNode asked) throws Exception {
        var partition = new TopicPartition(name(asked), asked.get("partition").intValue());
        var before = RecordsToDelete.beforeOffset(asked.get("before").longValue());
        admin.deleteRecords(Map.of(partition, before)).all().get();
        return Driver.JSON.createObjectNode();
    }

    private ObjectNode delete(JsonNode asked) throws Exception {
        admin.deleteTopics(List.of(name(asked))).all().get();
        return Driver.JSON.createObjectNode();
    }

    private static String name(JsonNode asked) {
        return asked.get("topic").textValue();
    }

    private static ConfigResource resource(JsonNode asked) {
        return new ConfigResource(ConfigResource.Type.TOPIC, name(asked));
    }

    private static Map<String, String> configs(JsonNode asked) {
        Map<String, String> found = new HashMap<>();
        asked.get("configs").fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }
}
