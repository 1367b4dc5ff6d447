/*
 * Tasks: serialised compaction tasks and statistics, made and read by Java Paimon, and its orphan removal. Called by Judge.
 *
 * A task as JSON: {"partition": hex, "files": [file], "database", "table"}, the last two only for tasks of many tables. A file has
 * the members of lakelet's DataFile, bytes as hex, statistics as {"min_values", "max_values", "null_counts"}.
 */
import java.io.*;
import java.util.*;
import org.apache.paimon.append.*;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.*;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;
import org.apache.paimon.stats.*;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.utils.SerializationUtils;

class Tasks {
    static final AppendCompactTaskSerializer ONE = new AppendCompactTaskSerializer();
    static final MultiTableCompactionTaskSerializer MANY = new MultiTableCompactionTaskSerializer();

    static void run(List<String> pos, BufferedReader in, PrintStream out) throws Exception {
        if (pos.get(0).equals("encode-tasks")) encode(in, out); else decode(in, out);
    }

    static void run(List<String> pos, FileStoreTable table, BufferedReader in, PrintStream out) throws Exception {
        switch (pos.get(0)) {
            case "clean-orphans": cleanOrphans(table, Long.parseLong(pos.get(4)), out); return;
            case "statistics": statistics(table, out); return;
            case "analyze": analyze(table, Judge.JSON.readTree(String.join("\n", (Iterable<String>) in.lines()::iterator))); return;
        }
    }

    /** JSON lines in, {"version", "task": hex} out. */
    static void encode(BufferedReader in, PrintStream out) throws Exception {
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode task = Judge.JSON.readTree(line);
            List<DataFileMeta> files = new ArrayList<>();
            for (JsonNode file : task.get("files")) files.add(file(file));
            BinaryRow partition = row(task.get("partition"));
            boolean many = task.hasNonNull("table");
            byte[] bytes = many
                    ? MANY.serialize(new MultiTableAppendCompactTask(partition, files, Identifier.create(task.get("database").asText(), task.get("table").asText())))
                    : ONE.serialize(new AppendCompactTask(partition, files));
            out.println(Judge.NODE.objectNode().put("version", many ? MANY.getVersion() : ONE.getVersion()).put("task", hex(bytes)));
        }
    }

    /** {"version", "many", "task": hex} lines in, JSON out. */
    static void decode(BufferedReader in, PrintStream out) throws Exception {
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode given = Judge.JSON.readTree(line);
            int version = given.get("version").asInt();
            byte[] bytes = HexFormat.of().parseHex(given.get("task").asText());
            AppendCompactTask task = given.get("many").asBoolean() ? MANY.deserialize(version, bytes) : ONE.deserialize(version, bytes);
            ObjectNode node = Judge.NODE.objectNode().put("partition", hex(task.partition()));
            ArrayNode files = node.putArray("files");
            for (DataFileMeta file : task.compactBefore()) files.add(json(file));
            if (task instanceof MultiTableAppendCompactTask) {
                Identifier table = ((MultiTableAppendCompactTask) task).tableIdentifier();
                node.put("database", table.getDatabaseName()).put("table", table.getObjectName());
            }
            out.println(node);
        }
    }

    /** What Java reads from the statistics of the newest snapshot, values as it holds them. */
    static void statistics(FileStoreTable table, PrintStream out) throws Exception {
        Optional<Statistics> found = table.statistics();
        if (!found.isPresent()) return;
        Statistics stats = found.get();
        ObjectNode node = Judge.NODE.objectNode().put("snapshotId", stats.snapshotId()).put("schemaId", stats.schemaId());
        stats.mergedRecordCount().ifPresent(n -> node.put("mergedRecordCount", n));
        stats.mergedRecordSize().ifPresent(n -> node.put("mergedRecordSize", n));
        ObjectNode columns = node.putObject("colStats");
        for (Map.Entry<String, ColStats<?>> entry : stats.colStats().entrySet()) {
            ColStats<?> column = entry.getValue();
            ObjectNode each = columns.putObject(entry.getKey()).put("colId", column.colId());
            column.distinctCount().ifPresent(n -> each.put("distinctCount", n));
            column.min().ifPresent(value -> each.put("min", String.valueOf(value)));
            column.max().ifPresent(value -> each.put("max", String.valueOf(value)));
            column.nullCount().ifPresent(n -> each.put("nullCount", n));
            column.avgLen().ifPresent(n -> each.put("avgLen", n));
            column.maxLen().ifPresent(n -> each.put("maxLen", n));
        }
        out.println(node);
    }

    /** Commits statistics given as JSON of Paimon's own form. */
    static void analyze(FileStoreTable table, JsonNode statistics) throws Exception {
        Statistics stats = Statistics.fromJson(statistics.toString());
        stats.deserializeFieldsFromString(table.schema());
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.updateStatistics(stats);
        }
    }

    static void cleanOrphans(FileStoreTable table, long olderThanMillis, PrintStream out) throws Exception {
        for (org.apache.paimon.fs.Path path : new LocalOrphanFilesClean(table, olderThanMillis, false).clean().getDeletedFilesPath())
            out.println(Judge.NODE.textNode(path.toString()));
    }

    static DataFileMeta file(JsonNode node) {
        return DataFileMeta.create(
                node.get("name").asText(), node.get("size").asLong(), node.get("row_count").asLong(),
                row(node.get("min_key")), row(node.get("max_key")), stats(node.get("key_stats")), stats(node.get("value_stats")),
                node.get("min_sequence").asLong(), node.get("max_sequence").asLong(), node.get("schema_id").asLong(), node.get("level").asInt(),
                texts(node.get("extra_files")), node.hasNonNull("creation_ms") ? Timestamp.fromEpochMillis(node.get("creation_ms").asLong()) : null,
                number(node.get("delete_row_count")), bytes(node.get("embedded_index")),
                node.hasNonNull("source") ? FileSource.fromByteValue((byte) node.get("source").asInt()) : null,
                texts(node.get("value_stats_columns")), Judge.text(node, "external_path"), number(node.get("first_row_id")), texts(node.get("write_columns")));
    }

    static ObjectNode json(DataFileMeta file) {
        ObjectNode node = Judge.NODE.objectNode().put("name", file.fileName()).put("size", file.fileSize()).put("row_count", file.rowCount())
                .put("min_key", hex(file.minKey())).put("max_key", hex(file.maxKey()));
        node.set("key_stats", json(file.keyStats()));
        node.set("value_stats", json(file.valueStats()));
        node.put("min_sequence", file.minSequenceNumber()).put("max_sequence", file.maxSequenceNumber()).put("schema_id", file.schemaId());
        node.put("level", file.level()).set("extra_files", texts(file.extraFiles()));
        node.put("creation_ms", file.creationTime() == null ? null : (Long) file.creationTime().getMillisecond());
        node.put("delete_row_count", file.deleteRowCount().orElse(null));
        node.put("embedded_index", file.embeddedIndex() == null ? null : hex(file.embeddedIndex()));
        node.put("source", file.fileSource().map(source -> (Integer) (int) source.toByteValue()).orElse(null));
        node.set("value_stats_columns", texts(file.valueStatsCols()));
        node.put("external_path", file.externalPath().orElse(null)).put("first_row_id", file.firstRowId());
        node.set("write_columns", texts(file.writeCols()));
        return node;
    }

    static SimpleStats stats(JsonNode node) {
        JsonNode counts = node.get("null_counts");
        Long[] numbers = new Long[counts.size()];
        for (int i = 0; i < numbers.length; i++) numbers[i] = number(counts.get(i));
        return new SimpleStats(row(node.get("min_values")), row(node.get("max_values")), BinaryArray.fromLongArray(numbers));
    }

    static ObjectNode json(SimpleStats stats) {
        ObjectNode node = Judge.NODE.objectNode().put("min_values", hex(stats.minValues())).put("max_values", hex(stats.maxValues()));
        ArrayNode counts = node.putArray("null_counts");
        for (int i = 0; i < stats.nullCounts().size(); i++)
            if (stats.nullCounts().isNullAt(i)) counts.addNull(); else counts.add(stats.nullCounts().getLong(i));
        return node;
    }

    static Long number(JsonNode node) { return node == null || node.isNull() ? null : (Long) node.asLong(); }
    static byte[] bytes(JsonNode node) { return node == null || node.isNull() ? null : HexFormat.of().parseHex(node.asText()); }
    static BinaryRow row(JsonNode node) { return SerializationUtils.deserializeBinaryRow(bytes(node)); }
    static String hex(byte[] bytes) { return HexFormat.of().formatHex(bytes); }
    static String hex(BinaryRow row) { return hex(SerializationUtils.serializeBinaryRow(row)); }

    static List<String> texts(JsonNode node) {
        if (node == null || node.isNull()) return null;
        List<String> texts = new ArrayList<>();
        node.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    static JsonNode texts(List<String> texts) {
        if (texts == null) return Judge.NODE.nullNode();
        ArrayNode array = Judge.NODE.arrayNode();
        texts.forEach(array::add);
        return array;
    }
}
