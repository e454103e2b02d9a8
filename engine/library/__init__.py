"""Models on disk and how to get them; reads headers, never weights."""
