"""What a run came to: finished data from the store's rows, and the HTML pages of it and of all runs. The
templates lie in the checkout's reports/.
"""
