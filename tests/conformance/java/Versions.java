/*
 * Versions: tags with a retention, automatic tags, branches by name, consumers, as Java Paimon makes them. Called by Judge.
 *
 * Commands, WDT = WAREHOUSE DB TABLE:
 *   tag-retained WDT NAME SNAPSHOT|- PT1H | rename-tag WDT NAME NEW | replace-tag WDT NAME SNAPSHOT|- [PT1H]
 *   auto-tags WDT          creates the automatic tags that are due, and expires those past their time
 *   batch-tag WDT          what a batch writer does where tag.automatic-creation is batch
 *   rename-branch WDT NAME NEW
 *   consumer WDT ID NEXT | delete-consumer WDT ID | consumers WDT
 */
import java.io.PrintStream;
import java.time.Duration;
import java.util.*;
import org.apache.paimon.consumer.*;
import org.apache.paimon.table.*;
import org.apache.paimon.tag.TagBatchCreation;

class Versions {
    static void run(List<String> pos, FileStoreTable table, PrintStream out) throws Exception {
        switch (pos.get(0)) {
            case "tag-retained":
                if (pos.get(5).equals("-")) table.createTag(pos.get(4), Duration.parse(pos.get(6)));
                else table.createTag(pos.get(4), Long.parseLong(pos.get(5)), Duration.parse(pos.get(6)));
                return;
            case "rename-tag": table.renameTag(pos.get(4), pos.get(5)); return;
            case "replace-tag":
                table.replaceTag(pos.get(4), pos.get(5).equals("-") ? null : Long.valueOf(pos.get(5)), pos.size() > 6 ? Duration.parse(pos.get(6)) : null);
                return;
            case "auto-tags": table.newTagAutoManager().run(); return;
            case "batch-tag": new TagBatchCreation(table).createTag(); return;
            case "rename-branch": table.renameBranch(pos.get(4), pos.get(5)); return;
            case "consumer": table.consumerManager().resetConsumer(pos.get(4), new Consumer(Long.parseLong(pos.get(5)))); return;
            case "delete-consumer": table.consumerManager().deleteConsumer(pos.get(4)); return;
            case "consumers": out.println(Judge.JSON.valueToTree(table.consumerManager().consumers()).toString()); return;
            default: Cleaning.run(pos, table, out);
        }
    }
}
