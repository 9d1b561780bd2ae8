// Kafka's own client, driven by lines; see child_drivers.py.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

public class Driver {
    static Properties settings;
    static KafkaProducer<byte[], byte[]> producer;

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            Map<String, String> asked = new HashMap<>();
            for (String word : line.split(" ")) {
                int at = word.indexOf('=');
                asked.put(word.substring(0, at), new String(HexFormat.of().parseHex(word.substring(at + 1)), StandardCharsets.UTF_8));
            }
            String word = "ok", said;
            try {
                said = answer(asked);
            } catch (Exception error) {
                word = "error";
                StringBuilder all = new StringBuilder();
                for (Throwable one = error; one != null; one = one.getCause()) all.append(one).append("; ");
                said = all.toString();
            }
            System.out.println(word + " " + HexFormat.of().formatHex(said.getBytes(StandardCharsets.UTF_8)));
        }
    }

    static String answer(Map<String, String> asked) throws Exception {
        switch (asked.get("do")) {
            case "version":
                return AppInfoParser.getVersion();
            case "open":
                settings = settings(asked);
                producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                return "";
            case "send":
                byte[] value = new byte[Integer.parseInt(asked.get("size"))];
                producer.send(new ProducerRecord<>(asked.get("topic"), 0, null, value)).get();
                return "";
            case "read":
                return read(asked.get("topic"));
            case "close":
                if (producer != null) producer.close(Duration.ZERO);
                producer = null;
                return "";
            default:
                throw new IllegalArgumentException(asked.get("do"));
        }
    }

    static String read(String topic) {
        Properties own = new Properties();
        own.putAll(settings);
        own.put("auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            for (var record : consumer.poll(Duration.ofSeconds(8))) return "" + record.value().length;
        }
        throw new IllegalStateException("no record");
    }

    static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static Properties settings(Map<String, String> asked) {
        Properties made = new Properties();
        made.put("bootstrap.servers", asked.get("servers"));
        made.put("security.protocol", asked.get("protocol"));
        made.put("client.id", asked.get("client_id"));
        made.put("max.block.ms", asked.get("wait_ms"));
        made.put("delivery.timeout.ms", asked.get("wait_ms"));
        made.put("request.timeout.ms", String.valueOf(Integer.parseInt(asked.get("wait_ms")) - 500));
        made.put("linger.ms", "0");
        if (!asked.get("ca").isEmpty()) {
            made.put("ssl.truststore.type", "PEM");
            made.put("ssl.truststore.location", asked.get("ca"));
        }
        if (!asked.get("pair").isEmpty()) {
            made.put("ssl.keystore.type", "PEM");
            made.put("ssl.keystore.location", asked.get("pair"));
        }
        String mechanism = asked.get("mechanism");
        if (mechanism.isEmpty()) return made;
        made.put("sasl.mechanism", mechanism);
        String security = "org.apache.kafka.common.security.";
        if (mechanism.equals("OAUTHBEARER")) {
            String url = "file://" + asked.get("token");
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", url);
            made.put("sasl.oauthbearer.token.endpoint.url", url);
            made.put("sasl.login.callback.handler.class", security + "oauthbearer.OAuthBearerLoginCallbackHandler");
            made.put("sasl.jaas.config", security + "oauthbearer.OAuthBearerLoginModule required;");
            return made;
        }
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        made.put("sasl.jaas.config", security + module + " required username=" + quoted(asked.get("user"))
            + " password=" + quoted(asked.get("password")) + ";");
        return made;
    }
}
