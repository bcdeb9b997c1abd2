"""What a run came to: finished data from the store's rows, and the HTML page of it. The templates lie in
the checkout's reports/.

May import: store, oracle, vocabulary.
"""
