"""Views stored in the lake: named queries over its tables and other views only."""
