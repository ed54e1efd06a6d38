"""Networks: the small networks of the courses, and the models of ``keras.applications`` by name."""
