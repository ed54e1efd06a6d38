"""Lock a recipe: record the exact files of the image and the steps of its build."""
