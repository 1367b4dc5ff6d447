"""What a kept file, a statement, the metadata of a table and the server of a catalog may say, and what only the program may."""
