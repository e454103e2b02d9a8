"""Chats as they are kept: their data, the file they lie in, and other files for them."""
