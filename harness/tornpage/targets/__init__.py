"""What can be tortured: programs behind one protocol, which turns wishes into command lines and output
into typed answers. Targets know nothing of trials.
"""
