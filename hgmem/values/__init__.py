"""Frozen values shared by all packages, and argument checks."""
