"""Ways to distribute a training, one in each module; :mod:`toolkit.trainers.ranks.world` defines their
interface.
"""
