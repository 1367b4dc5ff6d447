"""The merge of sorted runs into the newest row of each key: its sources, the pieces they are read in, the reader."""
