"""Procedures: `CALL sys.name(argument => value, …)`, under the names and arguments that Paimon's have in Flink and Spark.

    calling      reads a CALL, evaluates its arguments, runs the procedure
    procedure    what a procedure is: a name, arguments, what it gives back, a function
    values       the kinds of arguments
    registry     all procedures

The functions hand the work to tables and the lake; nothing here touches files.
"""

from lakelet.sql.procedures.registry import PROCEDURES

__all__ = ["PROCEDURES"]
