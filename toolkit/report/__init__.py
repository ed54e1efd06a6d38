"""Format results for users as pages, tables and plots. No other package of toolkit formats pages."""
