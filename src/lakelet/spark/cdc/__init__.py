"""Change events of databases (Debezium, Canal, Maxwell) into tables: envelopes, types, evolution, routing, quarantine."""
