import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * What kafka-reassign-partitions.sh --generate computes: Kafka's own placer, topic by topic.
 *
 * <p>Arguments: a file with, as big-endian ints, the brokers (count, then id and rack of each, -1: none) and the topics
 * (count, then partitions and replication factor of each); the file to write the lists to; the number of runs. Prints
 * the nanoseconds of each run, then the peak of the process's memory in kB.
 */
public final class Generate {
    private record Brokers(List<UsableBroker> all) implements ClusterDescriber {
        @Override
        public Iterator<UsableBroker> usableBrokers() {
            return all.iterator();
        }

        @Override
        public Uuid defaultDir(int broker) {
            return Uuid.ZERO_UUID;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<UsableBroker> brokers = new ArrayList<>();
        List<PlacementSpec> topics = new ArrayList<>();
        try (var in = new DataInputStream(new BufferedInputStream(new FileInputStream(arguments[0])))) {
            for (int left = in.readInt(); left > 0; left--) {
                int id = in.readInt();
                int rack = in.readInt();
                brokers.add(new UsableBroker(id, rack < 0 ? Optional.empty() : Optional.of("rack-" + rack), false));
            }
            for (int left = in.readInt(); left > 0; left--) {
                topics.add(new PlacementSpec(0, in.readInt(), (short) in.readInt()));
            }
        }
        List<PartitionAssignment> placed = List.of();
        for (int run = 0; run < Integer.parseInt(arguments[2]); run++) {
            long began = System.nanoTime();
            placed = place(topics, new Brokers(brokers));
            System.out.println(System.nanoTime() - began);
        }
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM")) {
                System.out.println(line.replaceAll("\\D", ""));
            }
        }
        try (var out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[1])))) {
            for (PartitionAssignment partition : placed) {
                for (int broker : partition.replicas()) {
                    out.writeInt(broker);
                }
            }
        }
    }

    private static List<PartitionAssignment> place(List<PlacementSpec> topics, Brokers brokers) {
        var placer = new StripedReplicaPlacer(new Random(0));
        List<PartitionAssignment> placed = new ArrayList<>();
        for (PlacementSpec topic : topics) {
            placed.addAll(placer.place(topic, brokers).assignments());
        }
        return placed;
    }
}
