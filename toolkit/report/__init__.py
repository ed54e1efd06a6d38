"""Format results as text for people: pages, tables and plots. No other package of toolkit formats pages."""
