"""Checks that ``preflight`` runs on the nodes, the ranks and the network between nodes; none needs
TensorFlow.
"""
