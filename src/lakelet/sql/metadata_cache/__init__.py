"""Statements about the metadata cache: SHOW PROC, ADMIN SET FRONTEND CONFIG and REFRESH."""
