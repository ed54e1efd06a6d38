"""Trainings, studies and timelines for people: text, tables, plots and pages."""
