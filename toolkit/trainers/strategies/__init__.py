"""Ways to distribute a training, one a module; :mod:`toolkit.trainers.ranks.world` says what each does."""
