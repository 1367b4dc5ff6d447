"""Callbacks that come with Lakelet; a table names them in its options, nothing else imports them."""
