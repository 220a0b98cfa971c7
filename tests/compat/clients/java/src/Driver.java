import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Properties;

/** The two ways to run: `serve BOOTSTRAP` answers commands from stdin, `member JSON` reads in a group until SIGTERM. */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 2 && arguments[0].equals("serve")) {
            Serve.run(arguments[1]);
        } else if (arguments.length == 2 && arguments[0].equals("member")) {
            Member.run(JSON.readTree(arguments[1]));
        } else {
            System.err.println("usage: serve BOOTSTRAP | member JSON");
            System.exit(2);
        }
    }

    /** One JSON object as a line on stdout, at once, with its time: on Linux, nanoTime is the clock of all processes. */
    static void tell(ObjectNode what) {
        what.put("at", System.nanoTime() / 1e9);
        System.out.println(what);
        System.out.flush();
    }

    /** What every client here is told: where the broker is, how to log in, and to come back quickly after a restart. */
    static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("reconnect.backoff.ms", "50");
        settings.put("reconnect.backoff.max.ms", "200");
        settings.put("retry.backoff.ms", "50");
        settings.put("retry.backoff.max.ms", "200");
        settings.put("metadata.max.age.ms", "1000");
        settings.put("default.api.timeout.ms", "30000");
        Security.addTo(settings);
        return settings;
    }
}
