import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Groups from outside: their list, their states, their offsets. */
final class Groups {
    private final Admin admin;

    Groups(Admin admin) {
        this.admin = admin;
    }

    void addTo(Map<String, Serve.Command> commands) {
        commands.put("commit", this::commit);
        commands.put("committed", this::committed);
        commands.put("list_groups", this::list);
        commands.put("describe_group", this::describe);
        commands.put("delete_group", this::delete);
    }

    private ObjectNode commit(JsonNode asked) throws Exception {
        var position = new OffsetAndMetadata(asked.get("offset").longValue(), asked.get("metadata").textValue());
        admin.alterConsumerGroupOffsets(group(asked), Map.of(partition(asked), position)).all().get();
        return Driver.JSON.createObjectNode();
    }

    private ObjectNode committed(JsonNode asked) throws Exception {
        OffsetAndMetadata found = admin.listConsumerGroupOffsets(group(asked))
                .partitionsToOffsetAndMetadata().get().get(partition(asked));
        ObjectNode answer = Driver.JSON.createObjectNode();
        return found == null
                ? answer.put("offset", -1).put("metadata", "")
                : answer.put("offset", found.offset()).put("metadata", found.metadata());
    }

    private ObjectNode list(JsonNode asked) throws Exception {
        ObjectNode answer = Driver.JSON.createObjectNode();
        List<String> names =
                admin.listConsumerGroups().all().get().stream().map(ConsumerGroupListing::groupId).sorted().toList();
        names.forEach(answer.putArray("groups")::add);
        return answer;
    }

    private ObjectNode describe(JsonNode asked) throws Exception {
        String group = group(asked);
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        return Driver.JSON.createObjectNode()
                .put("state", found.state().toString())
                .put("members", found.members().size());
    }

    private ObjectNode delete(JsonNode asked) throws Exception {
        admin.deleteConsumerGroups(List.of(group(asked))).all().get();
        return Driver.JSON.createObjectNode();
    }

    private static String group(JsonNode asked) {
        return asked.get("group").textValue();
    }

    private static TopicPartition partition(JsonNode asked) {
        return new TopicPartition(asked.get("topic").textValue(), asked.get("partition").intValue());
    }
}
