"""The result store, and with it all SQL of the package.

May import: oracle, vocabulary.
"""
