"""Second copies of write-ahead logs on other nodes: sent, held, and adopted where their node is lost."""
