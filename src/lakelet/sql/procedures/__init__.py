"""Procedures: `CALL sys.name(argument => value, …)`, under the names and arguments that Paimon's have in Flink and Spark.

    call         parses a CALL, evaluates its arguments, runs the procedure
    procedure    the definition of a procedure: name, arguments, result columns, function
    values       the types of arguments
    registry     all procedures

Each function wraps `lakelet.operations`: it turns arguments into a request and the response into rows. Nothing here accesses
files.
"""

from lakelet.sql.procedures.registry import PROCEDURES

__all__ = ["PROCEDURES"]
