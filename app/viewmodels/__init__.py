"""View models: what is shown, decided without a widget."""
