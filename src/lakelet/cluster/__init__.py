"""The nodes of a service as one: who is there, who owns a key, which files and tables there are.

Every part is a protocol with two implementations: `cluster/embedded` for one node, without any server, and `cluster/redis` for
many. What is here decides where work is done and never which rows there are: the tables are the only truth, and all of it can be
deleted at any moment and is rebuilt from them.
"""
