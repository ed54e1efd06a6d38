"""Images: recipes, how they are built, turned into one SIF file, and looked into."""
