import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Writes messages by Apache Kafka's own classes: lines of `NAME VERSION JSON` in, `NAME VERSION HEX` out.
 * Made tests/wire/golden/group_messages.txt with kafka-clients 4.3.1.
 */
public class GroupMessages {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            short version = Short.parseShort(words[1]);
            Class<?> converter = Class.forName("org.apache.kafka.common.message." + words[0] + "DataJsonConverter");
            Method read = converter.getMethod("read", JsonNode.class, short.class);
            Message message = (Message) read.invoke(null, mapper.readTree(words[2]), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(bytes), cache, version);
            StringBuilder hex = new StringBuilder();
            for (byte one : bytes.array()) {
                hex.append(String.format("%02x", one));
            }
            System.out.println(words[0] + " " + words[1] + " " + hex);
        }
    }
}
