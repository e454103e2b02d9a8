"""Slipstream's two front ends: the window and the terminal commands."""
