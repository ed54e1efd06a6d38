"""Format trainings, scaling studies and timelines: text, tables, plots and pages."""
