"""Format results as text for people: pages, tables, plots. No other package does this."""
