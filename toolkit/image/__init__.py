"""Work with images: recipes, builds, conversion to SIF files, and inspection."""
