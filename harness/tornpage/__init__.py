"""Tornpage: torture of the crash recovery of page-based storage engines."""

__version__ = "0.1.0"
