"""Lock a recipe: record the files of the image and the steps of its build."""
