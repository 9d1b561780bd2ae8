import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactions of one record, one after the other: begin, send, commit. One virtual machine for all runs. */
public class OneRecord {
    /** Each line of stdin: servers, topic, transactional id, seconds, bytes of the value; separated by tabs. */
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] given = line.split("\t");
            run(given[0], given[1], given[2], Double.parseDouble(given[3]), new byte[Integer.parseInt(given[4])]);
            System.out.println("run ended");
        }
    }

    /** Prints how many were committed a second, and the median from begin to commit in ms. */
    private static void run(String servers, String topic, String id, double seconds, byte[] value) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("transactional.id", id);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            commit(producer, topic, value);
            long[] took = new long[1 << 20];
            int done = 0;
            long begun = System.nanoTime();
            long now = begun;
            while (now - begun < seconds * 1e9 && done < took.length) {
                commit(producer, topic, value);
                long after = System.nanoTime();
                took[done++] = after - now;
                now = after;
            }
            Arrays.sort(took, 0, done);
            System.out.printf("%.1f commits/s, %.3f ms p50%n", done / ((now - begun) / 1e9), took[done / 2] / 1e6);
        }
    }

    private static void commit(KafkaProducer<byte[], byte[]> producer, String topic, byte[] value) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(topic, value));
        producer.commitTransaction();
    }
}
