"""Pictures of the graph: text for a terminal, Mermaid, SVG."""
