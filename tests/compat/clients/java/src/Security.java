import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;

/** CLIENT_SECURITY as the Java client takes it: how a client logs in, inside TLS; `ca`, `certificate`, `token` are files. */
final class Security {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final Map<String, String> LOGINS = Map.of(
            "PLAIN", "plain.PlainLoginModule",
            "SCRAM-SHA-256", "scram.ScramLoginModule",
            "SCRAM-SHA-512", "scram.ScramLoginModule",
            "OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule");

    private Security() {}

    /** Adds the settings of security that the driver was given: none without CLIENT_SECURITY. */
    static void addTo(Properties settings) {
        String said = System.getenv("CLIENT_SECURITY");
        if (said == null) {
            return;
        }
        try {
            addTo(settings, Driver.JSON.readTree(said));
        } catch (JsonProcessingException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }

    private static void addTo(Properties settings, JsonNode given) {
        String mechanism = given.path("mechanism").asText("");
        settings.put("security.protocol", mechanism.isEmpty() ? "SSL" : "SASL_SSL");
        settings.put("ssl.truststore.type", "PEM");
        settings.put("ssl.truststore.location", given.get("ca").textValue());
        if (given.has("certificate")) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", given.get("certificate").textValue());
        }
        if (!mechanism.isEmpty()) {
            settings.put("sasl.mechanism", mechanism);
            settings.put("sasl.jaas.config", MODULES + LOGINS.get(mechanism) + " required" + user(given) + ";");
        }
        if (given.has("token")) {
            takeTokenFrom(Path.of(given.get("token").textValue()), settings);
        }
    }

    private static String user(JsonNode given) {
        return given.has("user")
                ? " username=\"%s\" password=\"%s\"".formatted(given.get("user").textValue(), given.get("password").textValue())
                : "";
    }

    /** Since CVE-2025-27817 a client reads no file that a property of the system does not name; 4.1 has one more for it. */
    private static void takeTokenFrom(Path file, Properties settings) {
        String url = file.toUri().toString();
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", file.toString());
        settings.put("sasl.login.callback.handler.class", MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler");
        settings.put("sasl.oauthbearer.token.endpoint.url", url);
        // The default of 4.1 is a broker's as well, for which jose4j has to be there.
        settings.put("sasl.oauthbearer.jwt.validator.class", MODULES + "oauthbearer.ClientJwtValidator");
    }
}
