/*
 * Buckets: where Java Paimon puts rows, and how it gives a bucket to those that wait for one. Called by Judge.
 *
 * Paimon itself compacts postponed buckets only inside Flink and Spark; this does on one thread what they do on many: every waiting
 * file is replayed, oldest first, into a table of fixed buckets, and taken out in the same commit.
 */
import java.io.BufferedReader;
import java.io.PrintStream;
import java.util.*;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.data.*;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.io.*;
import org.apache.paimon.table.*;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.*;

class Buckets {
    static void print(FileStoreTable table, BufferedReader in, PrintStream out) throws Exception {
        boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        try (TableWriteImpl<?> write = table.newWrite("judge")) {
            for (String line; (line = in.readLine()) != null; ) {
                InternalRow row = (InternalRow) Judge.fromJson(table.rowType(), Judge.JSON.readTree(line));
                out.println(dynamic ? keys.trimmedPrimaryKey(row).hashCode() : write.getBucket(row));
            }
        }
    }

    static void compactPostponed(FileStoreTable table, String buckets) throws Exception {
        FileStoreTable fixed = table.copy(Map.of(CoreOptions.BUCKET.key(), buckets, CoreOptions.WRITE_ONLY.key(), "false"));
        String user = "judge-postponed-" + UUID.randomUUID();
        List<CommitMessage> messages = new ArrayList<>();
        try (TableWriteImpl<?> write = fixed.newWrite(user); TableCommitImpl commit = PostponeUtils.tableForCommit(fixed).newCommit(user)) {
            write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            for (Split split : fixed.newSnapshotReader().withBucket(BucketMode.POSTPONE_BUCKET).read().splits()) {
                DataSplit waiting = (DataSplit) split;
                List<DataFileMeta> files = new ArrayList<>(waiting.dataFiles());
                files.sort(Comparator.comparing(DataFileMeta::creationTime));
                for (DataFileMeta file : files) {
                    DataSplit one = DataSplit.builder().withPartition(waiting.partition()).withBucket(waiting.bucket())
                            .withBucketPath(waiting.bucketPath()).withTotalBuckets(waiting.totalBuckets())
                            .withDataFiles(List.of(file)).isStreaming(false).build();
                    List<Exception> failed = new ArrayList<>();
                    fixed.newRead().createReader(one).forEachRemaining(row -> {
                        try { write.write(row); } catch (Exception e) { failed.add(e); }
                    });
                    if (!failed.isEmpty()) throw failed.get(0);
                }
                messages.add(new CommitMessageImpl(waiting.partition(), waiting.bucket(), waiting.totalBuckets(),
                        DataIncrement.emptyIncrement(), new CompactIncrement(files, List.of(), List.of())));
            }
            messages.addAll(write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER));
            commit.commit(BatchWriteBuilder.COMMIT_IDENTIFIER, messages);
        }
    }
}
