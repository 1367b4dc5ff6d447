"""Built-in commit callbacks; a table names them in its options, nothing else imports them."""
