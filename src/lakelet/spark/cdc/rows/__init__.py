"""The rows of change events in a table's types: computed columns, the winner of a key, kept on the executors."""
