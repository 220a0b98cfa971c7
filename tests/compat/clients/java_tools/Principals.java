import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Rules, then files of certificates (DER): for each the name of its subject, and the name that the rules make of it. */
public class Principals {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(arguments[0]);
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (int number = 1; number < arguments.length; number++) {
            try (InputStream data = Files.newInputStream(Path.of(arguments[number]))) {
                X509Certificate certificate = (X509Certificate) factory.generateCertificate(data);
                String name = certificate.getSubjectX500Principal().getName();
                out.println(name);
                out.println(map(mapper, name));
            }
        }
    }

    private static String map(SslPrincipalMapper mapper, String name) {
        try {
            return mapper.getName(name);
        } catch (IOException error) {
            return "no rule";
        }
    }
}
