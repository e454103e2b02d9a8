"""Drafters and plain decoding compared on the same prompts. Measures; decides nothing."""
