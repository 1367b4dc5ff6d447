"""`lakelet shell`: statements typed one after another.

prompting (a terminal) or lines of standard input  ->  reading: whole statements  ->  running: results, timing, errors
                                                       backslash: \\d, \\l, \\timing and the like
"""
