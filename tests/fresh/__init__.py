"""How old the knowledge of recipes/knowledge is: what the package index has, beside what the rows have."""
