"""Programs that tests submit to a cluster; each tells what it saw as JSON on its last line."""
