"""Conversations from files and from callers, as documents."""
