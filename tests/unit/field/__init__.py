"""Test what toolkit predicts for launches in public reports."""
