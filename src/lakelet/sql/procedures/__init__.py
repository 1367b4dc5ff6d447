"""Procedures: `CALL sys.name(argument => value, …)`, under the names and arguments that Paimon's have in Flink and Spark.

    calling      reads a CALL, evaluates its arguments, runs the procedure
    procedure    what a procedure is: a name, arguments, what it gives back, a function
    values       the kinds of arguments
    registry     all procedures

Each function is an edge over `lakelet.operations`: arguments become a request, what comes back becomes rows. Nothing here
touches files.
"""

from lakelet.sql.procedures.registry import PROCEDURES

__all__ = ["PROCEDURES"]
