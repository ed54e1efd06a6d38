"""Images: recipes, builds, conversion to SIF files, and inspection."""
