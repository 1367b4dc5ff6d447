"""Find functions in SQL whose value differs from one run of a query to the next: the current time, random numbers, the like."""

from __future__ import annotations

import re

from lakelet.sql.lexer.spark_words import words_of

_VOLATILE = re.compile(
    r"(current_\w+|now|curdate|localtimestamp|unix_timestamp|rand|randn|random|randstr|uniform|uuid|shuffle|user|session_user"
    r"|input_file_\w+|monotonically_increasing_id|spark_partition_id|java_method|reflect|try_reflect|version)\Z",
    re.IGNORECASE,
)


def is_volatile(text: str) -> bool:
    """Whether a query or a condition may name such a function; a column that is called like one counts as well."""
    return any(word.is_name and _VOLATILE.match(word.text) for word in words_of(text))
