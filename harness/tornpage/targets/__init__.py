"""The stores under test: programs behind one protocol, which turns requests into command lines and output
into typed answers. Targets know nothing of trials.
"""
