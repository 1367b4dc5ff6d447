/*
 * Marks: deleted rows of append tables in deletion vectors, as Spark's DELETE writes them for Java Paimon. Called by Judge.
 *
 * Commands, WDT = WAREHOUSE DB TABLE:
 *   mark WDT       {data file: [position, ...]} on stdin, committed as one snapshot
 */
import java.util.*;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.deletionvectors.*;
import org.apache.paimon.deletionvectors.append.*;
import org.apache.paimon.index.*;
import org.apache.paimon.io.*;
import org.apache.paimon.manifest.*;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.*;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.*;
import org.apache.paimon.utils.Pair;

class Marks {
    static void run(FileStoreTable table, JsonNode marks) throws Exception {
        Map<Pair<BinaryRow, Integer>, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
        IndexFileHandler handler = table.store().newIndexFileHandler();
        for (Split one : table.newReadBuilder().newScan().plan().splits()) {
            DataSplit split = (DataSplit) one;
            for (DataFileMeta file : split.dataFiles()) {
                if (!marks.has(file.fileName())) continue;
                DeletionVector vector =
                        table.coreOptions().deletionVectorBitmap64() ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
                marks.get(file.fileName()).forEach(position -> vector.delete(position.asLong()));
                maintainers.computeIfAbsent(Pair.of(split.partition(), split.bucket()), place ->
                        table.bucketMode() == BucketMode.BUCKET_UNAWARE
                                ? BaseAppendDeleteFileMaintainer.forUnawareAppend(
                                        handler, table.snapshotManager().latestSnapshot(), place.getLeft())
                                : BaseAppendDeleteFileMaintainer.forBucketedAppend(
                                        handler, table.snapshotManager().latestSnapshot(), place.getLeft(), place.getRight()))
                        .notifyNewDeletionVector(file.fileName(), vector);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        for (BaseAppendDeleteFileMaintainer maintainer : maintainers.values()) {
            List<IndexFileMeta> added = new ArrayList<>(), removed = new ArrayList<>();
            for (IndexManifestEntry entry : maintainer.persist())
                (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
            DataIncrement increment = new DataIncrement(
                    Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), added, removed);
            messages.add(new CommitMessageImpl(maintainer.getPartition(), maintainer.getBucket(), table.coreOptions().bucket(),
                    increment, CompactIncrement.emptyIncrement()));
        }
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) { commit.commit(messages); }
    }
}
