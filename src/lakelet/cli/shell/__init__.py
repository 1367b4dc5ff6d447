"""`lakelet shell`: the interactive shell.

prompt (a terminal) or lines of standard input  ->  open: complete statements  ->  statement_run: results, timing, errors
                                                       backslash: \\d, \\l, \\timing and the like
"""
