/*
 * Cleaning: expiry by the table's own options, partition expiry and orphan removal, as Java Paimon does them. Called by Judge.
 *
 * Commands, WDT = WAREHOUSE DB TABLE:
 *   expire-by-options WDT          snapshots, then changelogs; how many of each
 *   expire-partitions WDT          the partitions dropped (set partition.expiration-check-interval to 0 s)
 *   orphans WDT OLDER_THAN_MS      removes what nothing points at; the names of what was removed
 */
import java.io.PrintStream;
import java.util.*;
import org.apache.paimon.fs.Path;
import org.apache.paimon.operation.*;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.table.*;

class Cleaning {
    static void run(List<String> pos, FileStoreTable table, PrintStream out) throws Exception {
        switch (pos.get(0)) {
            case "expire-by-options":
                ExpireConfig config = table.coreOptions().expireConfig();
                out.println(table.newExpireSnapshots().config(config).expire());
                out.println(table.newExpireChangelog().config(config).expire());
                return;
            case "expire-partitions":
                List<Map<String, String>> dropped = table.store().newPartitionExpire("cleaning", table).expire(Long.MAX_VALUE);
                out.println(Judge.JSON.valueToTree(dropped == null ? Collections.emptyList() : dropped).toString());
                return;
            case "orphans":
                List<Path> removed = new LocalOrphanFilesClean(table, Long.parseLong(pos.get(4))).clean().getDeletedFilesPath();
                for (Path path : removed) out.println(Judge.JSON.valueToTree(path.getName()).toString());
                return;
            default: throw new IllegalArgumentException("unknown command " + pos.get(0));
        }
    }
}
