"""Import and export of files outside the lake, through a session. Nothing here prints."""
