"""The OLAP service: rows in over REST and gRPC, queries over what is committed and what is buffered."""
