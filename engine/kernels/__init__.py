"""Arithmetic that gives a row the same bits whatever rows are computed beside it."""
