"""Networks: the small ones of the courses, and those of ``keras.applications`` by name."""
