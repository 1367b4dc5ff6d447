"""The allow-list of functions in default expressions.

None reads a file, a setting, the environment or the network, none asks for the time, and none makes a value whose length is an
argument. Functions that later DuckDB versions add are refused until they are listed here.
"""

from __future__ import annotations

_OPERATORS = "+ - * / // % ** ^ & | << >> ~ || @ ~~ !~~ ~~* !~~*"
_NUMBERS = """
    abs add acos asin atan atan2 bit_count cbrt ceil ceiling cos degrees divide even exp factorial fdiv floor fmod gcd greatest
    lcm least ln log log10 log2 mod multiply pi pow power radians round sign sin sqrt subtract tan trunc xor
"""
_TEXTS = """
    ascii base64 bin bit_length char_length character_length chr concat concat_ws contains decode encode ends_with from_base64
    from_hex hash hex instr lcase left len length like_escape lower ltrim md5 nfc_normalize octet_length ord position prefix
    regexp_extract regexp_full_match regexp_matches regexp_replace replace reverse right rtrim sha1 sha256 split_part
    starts_with strip_accents strlen strpos substr substring suffix to_base64 to_binary to_hex translate trim ucase unhex
    unicode upper url_encode uuid_extract_version
"""
_TIMES = """
    century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day make_date
    make_time make_timestamp make_timestamp_ms make_timestamptz microsecond millennium millisecond minute month monthname
    quarter second strftime strptime time_bucket timezone to_centuries to_days to_decades to_hours to_microseconds
    to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week
    weekday weekofyear year yearweek
"""
_CHOICES = "constant_or_null if ifnull nullif"
PURE = frozenset((_OPERATORS + _NUMBERS + _TEXTS + _TIMES + " " + _CHOICES).split())
# The volatile ones, which give every row another value.
VOLATILE = frozenset(("uuid", "gen_random_uuid", "uuidv4", "uuidv7", "random"))
