"""The tables of the service: which are served, how they are laid out, configured and described."""
