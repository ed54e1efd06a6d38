"""Measure the accuracy of trainings on whole data sets, with the commands of users."""
