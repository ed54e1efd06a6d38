"""Neural networks: small networks for courses, and the models of ``keras.applications`` by name."""
