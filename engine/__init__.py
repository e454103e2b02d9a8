"""Slipstream's engine: loads models, drafts, verifies and chats, without a screen."""
