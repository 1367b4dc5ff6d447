"""Write-ahead logs: their folder, its lock and keys, the writer that groups records, and what replays them."""
