"""Views that the lake keeps: queries under a name, over its tables and other views alone."""
