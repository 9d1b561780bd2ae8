import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.tools.ProducerPerformance;

/** Runs Kafka's kafka-producer-perf-test once for each line of stdin, in one virtual machine, so that it stays warm. */
public class WarmProducer {
    /** Each line holds the tool's arguments, separated by tabs. After each run a line of its own says so. */
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ProducerPerformance.main(line.split("\t"));
            System.out.println("run ended");
        }
    }
}
