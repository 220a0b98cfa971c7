import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.AppInfoParser;

/** Commands as JSON lines on stdin, each answered by one line on stdout. */
final class Serve {
    /** Carries a command out; what it returns is the answer's `ok`. */
    interface Command {
        ObjectNode run(JsonNode asked) throws Exception;
    }

    private Serve() {}

    static void run(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Driver.settings(bootstrap))) {
            Map<String, Command> commands = new HashMap<>();
            commands.put("describe", asked -> describe());
            new Records(bootstrap).addTo(commands);
            new Groups(admin).addTo(commands);
            new Topics(admin).addTo(commands);
            var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                Driver.tell(answer(commands, Driver.JSON.readTree(line)));
            }
        }
    }

    private static ObjectNode answer(Map<String, Command> commands, JsonNode asked) {
        ObjectNode answer = Driver.JSON.createObjectNode();
        Command command = commands.get(asked.get("do").textValue());
        if (command == null) {
            return answer.put("error", "unsupported");
        }
        try {
            return answer.set("ok", command.run(asked));
        } catch (Exception failure) {
            return answer.put("error", name(failure));
        }
    }

    private static ObjectNode describe() {
        return Driver.JSON.createObjectNode().put("client", "kafka-clients").put("version", AppInfoParser.getVersion());
    }

    /** The name Kafka has for an error of the broker; for one of the client, its own words. */
    static String name(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && (cause instanceof ExecutionException || !known(cause))) {
            cause = cause.getCause();
        }
        return known(cause) ? Errors.forException(cause).name() : failure.toString();
    }

    /** A TimeoutException is the client's own far more often than the broker's REQUEST_TIMED_OUT. */
    private static boolean known(Throwable failure) {
        return !(failure instanceof TimeoutException) && Errors.forException(failure) != Errors.UNKNOWN_SERVER_ERROR;
    }
}
