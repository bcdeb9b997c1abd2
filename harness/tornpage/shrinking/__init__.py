"""Smaller scripts and smaller crashes with the same finding."""
