import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;
import org.slf4j.LoggerFactory;

/**
 * Runs Kafka's command-line tools one after the other in one Java machine, since starting one takes longer than most tools do.
 *
 * A line `{"tool": class, "arguments": [...], "stdin": text}` is answered by `{"status": number, "output": text, "errors": text}`.
 */
public final class ToolRunner {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Takes the place of the end of the process. */
    private static final class Ended extends Error {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    private Integer status;
    private final List<Runnable> hooks = new ArrayList<>();

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        PrintStream log = System.err;
        System.setOut(log);
        LoggerFactory.getLogger(ToolRunner.class);  // finds its output now, which must not be a tool's
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(new ToolRunner().run(JSON.readTree(line)));
            System.setOut(log);
            System.setErr(log);
        }
    }

    private ObjectNode run(JsonNode asked) throws Exception {
        var output = new ByteArrayOutputStream();
        var errors = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(asked.get("stdin").textValue().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(this::exit);
        Exit.setHaltProcedure(this::exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        List<String> arguments = new ArrayList<>();
        asked.get("arguments").forEach(each -> arguments.add(each.textValue()));
        try {
            Class<?> tool = Class.forName(asked.get("tool").textValue());
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments.toArray(String[]::new));
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                thrown.getCause().printStackTrace();
                status = status == null ? 1 : status;
            }
        }
        hooks.forEach(Runnable::run);
        return JSON.createObjectNode()
                .put("status", status == null ? 0 : status)
                .put("output", output.toString(StandardCharsets.UTF_8))
                .put("errors", errors.toString(StandardCharsets.UTF_8));
    }

    /** The first call counts: some tools catch what it throws, and call again. */
    private void exit(int code, String message) {
        if (status == null) {
            status = code;
            if (message != null) {
                System.err.println(message);
            }
        }
        throw new Ended();
    }
}
