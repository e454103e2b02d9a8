"""Widgets: they show view models and compute nothing."""
