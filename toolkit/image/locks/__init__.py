"""Lock a recipe: the files that an image is built from, and the steps of the build."""
