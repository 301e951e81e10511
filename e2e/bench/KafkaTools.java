import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's own command-line tools one after the other in one Java process, whose start costs more than they do.
 *
 * Standard input: the number of words, then the words, class name first. Standard output: the exit code, what the tool
 * wrote to its standard output, and to its standard error. Numbers are big-endian ints, texts UTF-8 with their length.
 */
public final class KafkaTools {
    /** Leads out of a tool that has asked for the end of the process. Some catch it: what they do then never happened. */
    private static final class Exited extends RuntimeException {
        private Exited() {
            super(null, null, false, false);
        }
    }

    /** Stands for System.out or System.err, which tools and their loggers may keep from call to call. */
    private static final class Collected extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int value) {
            if (exitCode == null) {
                bytes.write(value);
            }
        }

        @Override
        public synchronized void write(byte[] values, int from, int length) {
            if (exitCode == null) {
                bytes.write(values, from, length);
            }
        }

        private synchronized byte[] take() {
            byte[] taken = bytes.toByteArray();
            bytes.reset();
            return taken;
        }
    }

    /** Of the tool that is running: null until it asks for the end of the process. */
    private static volatile Integer exitCode;

    public static void main(String[] none) throws IOException {
        DataInputStream orders = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        Collected out = new Collected();
        Collected err = new Collected();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(KafkaTools::exit);
        Exit.setHaltProcedure(KafkaTools::exit);
        while (true) {
            String[] words;
            try {
                words = new String[orders.readInt()];
            } catch (EOFException over) {
                return;
            }
            for (int at = 0; at < words.length; at++) {
                words[at] = new String(orders.readNBytes(orders.readInt()), StandardCharsets.UTF_8);
            }
            answer(answers, run(words), out.take(), err.take());
        }
    }

    private static void exit(int code, String message) {
        if (message != null) {
            System.err.println(message);
        }
        if (exitCode == null) {
            exitCode = code;
        }
        throw new Exited();
    }

    private static int run(String[] words) {
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        exitCode = null;
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (exitCode == null) {
                thrown.getCause().printStackTrace();
                return 1;
            }
        } catch (ReflectiveOperationException absent) {
            absent.printStackTrace();
            return 1;
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static void answer(DataOutputStream answers, int code, byte[] out, byte[] err) throws IOException {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        DataOutputStream fields = new DataOutputStream(whole);
        fields.writeInt(code);
        for (byte[] text : new byte[][] {out, err}) {
            fields.writeInt(text.length);
            fields.write(text);
        }
        answers.write(whole.toByteArray());
        answers.flush();
    }
}
