"""Drafting heads as networks: small ones that read a target's hidden states."""
