"""Rows on their way in: records validated, the payload's columns grown, one group of requests to one sync of the log."""
