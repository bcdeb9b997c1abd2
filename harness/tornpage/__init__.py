"""Tornpage: torture of the crash recovery of page-based storage engines.

May import: nothing of the package.
"""

__version__ = "0.1.0"
