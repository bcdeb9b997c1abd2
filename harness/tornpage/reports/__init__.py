"""The outcome of a run: finished data from the store's rows, and the HTML pages of it and of all runs. The
templates are in the checkout's reports/.
"""
